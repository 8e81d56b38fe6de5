/* The passes over a block of rows that are too slow in Python; queries/compiled.py is their doorway.
 *
 * Invariant: nothing is read but the block and the MARGIN of zeros on both sides of it, nothing is written but the
 * caller's arrays, and nothing is kept. A place is a number of bytes from the start of the first margin.
 *
 * Eight signs are looked at as one word of 64 bits whose lowest byte is the first of them. */

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a word's lowest byte has to be its first sign"
#endif

enum { WORD = 8, MOST_DIGITS = 15, MOST_DECIMALS = 3, DECLINED = -1 };

static const uint64_t EACH = 0x0101010101010101, LOW_BITS = 0x7F7F7F7F7F7F7F7F;

static uint64_t word_at(const uint8_t *signs) {
    uint64_t word;
    __builtin_memcpy(&word, signs, sizeof word);
    return word;
}

/* The high bit of each byte that is this sign, and no other bit. */
static uint64_t where(uint64_t word, uint8_t sign) {
    word ^= EACH * sign;
    return ~(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
}

/* How many bytes `where` has found. */
static int64_t count_of(uint64_t found) {
    return (int64_t)((found >> 7) * EACH >> 56);
}

/* Of the quote that closes the field which is opened at this place; DECLINED where none does. */
static int64_t closing(const uint8_t *signs, int64_t opening, int64_t end) {
    for (int64_t at = opening + 1; at < end; at++)
        if (signs[at] == '"' && signs[++at] != '"')
            return at - 1;
    return DECLINED;
}

/* Finds the rows without quoted fields that are as wide as the header, and where their fields lie; how many there are.
 * DECLINED where lines may not be rows: a CR alone outside quotes, or a quoted field that is not closed.
 *
 * A row is from row_starts to row_ends, its line end included. `column_of` says for each field of a row which of the
 * columns it is, DECLINED if nobody wants it; a column is `room` places long, at least one more than there can be rows.
 * `is_simple`: the caller knows that there are no quotes and no CR. */
static inline __attribute__((always_inline)) int64_t rows_of(
    const uint8_t *signs, int64_t begin, int64_t end, uint8_t separator, int64_t width, const int32_t *column_of,
    int64_t room, int32_t *starts, int32_t *ends, int32_t *row_starts, int32_t *row_ends, int is_simple) {
    int64_t row = 0, field = 0, start = begin, row_start = begin;
    int has_quotes = 0;
    for (int64_t base = begin; base < end; base += WORD) {
        uint64_t word = word_at(signs + base);
        uint64_t found = where(word, separator) | where(word, '\n');
        if (!is_simple)
            found |= where(word, '\r') | where(word, '"');
        for (; found; found &= found - 1) {
            int64_t at = base + __builtin_ctzll(found) / 8;
            uint8_t sign = signs[at];
            if (sign == separator || sign == '\n') {
                if (field < width && column_of[field] >= 0) {
                    int64_t place = column_of[field] * room + row;
                    starts[place] = (int32_t)start;
                    ends[place] = (int32_t)(sign == '\n' && signs[at - 1] == '\r' ? at - 1 : at);
                }
                field++;
                start = at + 1;
                if (sign == '\n') {
                    if (field == width && !has_quotes) {
                        row_starts[row] = (int32_t)row_start;
                        row_ends[row] = (int32_t)start;
                        row++;
                    }
                    field = has_quotes = 0;
                    row_start = start;
                }
            } else if (sign == '\r') {
                if (signs[at + 1] != '\n')
                    return DECLINED;
            } else if (at == start) { /* elsewhere a quote is text like any other */
                int64_t last = closing(signs, at, end);
                if (last == DECLINED)
                    return DECLINED;
                has_quotes = 1;
                base = last + 1 - WORD; /* the next word starts behind it */
                break;
            }
        }
    }
    return row;
}

int64_t find_rows(const uint8_t *signs, int64_t begin, int64_t end, uint8_t separator, int64_t width,
                  const int32_t *column_of, int64_t room, int32_t *starts, int32_t *ends, int32_t *row_starts,
                  int32_t *row_ends, int32_t is_simple) {
    if (is_simple)
        return rows_of(signs, begin, end, separator, width, column_of, room, starts, ends, row_starts, row_ends, 1);
    return rows_of(signs, begin, end, separator, width, column_of, room, starts, ends, row_starts, row_ends, 0);
}

/* How many lines end between two places: at LF, CRLF and a CR alone, also within quotes. */
int64_t count_lines(const uint8_t *signs, int64_t begin, int64_t end) {
    int64_t lines = 0, at = begin;
    for (; at + WORD < end; at += WORD) {
        uint64_t word = word_at(signs + at), returns = where(word, '\r');
        lines += count_of(where(word, '\n'));
        if (returns)
            lines += count_of(returns & ~where(word_at(signs + at + 1), '\n'));
    }
    for (; at < end; at++)
        lines += signs[at] == '\n' || (signs[at] == '\r' && (at + 1 == end || signs[at + 1] != '\n'));
    return lines;
}

/* The texts one behind the other; offsets has one more than there are texts. */
void copy_texts(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends, int32_t *offsets,
                uint8_t *texts) {
    int32_t length = 0;
    for (int64_t row = 0; row < count; row++) {
        offsets[row] = length;
        for (int32_t at = starts[row]; at < ends[row]; at++)
            texts[length++] = signs[at];
    }
    offsets[count] = length;
}

/* Which texts are not empty and have nothing to trim at either end: signs of ASCII that nobody would. */
void find_bare(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends, uint8_t *are_bare) {
    for (int64_t row = 0; row < count; row++) {
        uint8_t first = signs[starts[row]], last = signs[ends[row] - 1];
        are_bare[row] = starts[row] < ends[row] && first > ' ' && first <= '~' && last > ' ' && last <= '~';
    }
}

/* How often each text has the sign. */
void count_sign(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends, uint8_t sign,
                int32_t *counts) {
    for (int64_t row = 0; row < count; row++) {
        int32_t found = 0;
        for (int32_t at = starts[row]; at < ends[row]; at++)
            found += signs[at] == sign;
        counts[row] = found;
    }
}

/* Numbers like 862, 862.0, 78.125: up to fifteen digits, and up to three decimals behind a point, which are given as
 * thousandths. What is none has DECLINED decimals, and zeros. */
void read_numbers(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends, int64_t *wholes,
                  int64_t *fractions, int8_t *decimals) {
    static const int64_t THOUSANDTHS[] = {0, 100, 10, 1};
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *sign = signs + starts[row], *end = signs + ends[row], *first = sign;
        int64_t whole = 0, fraction = 0;
        int64_t written = 0;
        for (; sign < end && (uint8_t)(*sign - '0') <= 9 && sign - first < MOST_DIGITS; sign++)
            whole = whole * 10 + (*sign - '0');
        int is_number = sign > first;
        if (sign < end && *sign == '.') {
            sign++;
            for (; sign < end && (uint8_t)(*sign - '0') <= 9 && written < MOST_DECIMALS; sign++, written++)
                fraction = fraction * 10 + (*sign - '0');
            is_number &= written > 0;
        }
        is_number &= sign == end;
        wholes[row] = is_number ? whole : 0;
        fractions[row] = is_number ? fraction * THOUSANDTHS[written] : 0;
        decimals[row] = is_number ? (int8_t)written : DECLINED;
    }
}

/* Ratings are most of the bytes that are read, so the layout in which everybody has them, `1,31,2.5,1260759144`, is read
 * in one go: the film and the half stars of the rows that are just so, with 0.5, 1.0 … 5.0; how many there are. `gaps`
 * gets where each stretch of other rows starts and ends, and DECLINED behind the last one; it has room for so many.
 * DECLINED where there are more, or signs that may make lines something else than rows. */
int64_t read_ratings(const uint8_t *signs, int64_t begin, int64_t end, int64_t *movies, uint8_t *half_stars,
                     int64_t room, int32_t *gaps) {
    int64_t row = 0, gap = 0, open = 0;
    const uint8_t *at = signs + begin, *stop = signs + end;
    while (at < stop) {
        const uint8_t *start = at, *first;
        int is_right = 1;
        while (*at > ',')
            at++;
        is_right &= *at == ',';
        at += is_right;
        uint64_t movie = 0;
        for (first = at; (uint8_t)(*at - '0') <= 9; at++)
            movie = movie * 10 + (*at - '0');
        is_right &= at > first && at - first <= MOST_DIGITS && *at == ',';
        at += is_right;
        uint8_t whole = at[0] - '0', half = at[2];
        is_right = is_right && whole <= 5 && at[1] == '.' && (half == '0' || half == '5') && at[3] == ',';
        uint8_t stars = 2 * whole + (half == '5');
        is_right &= stars >= 1 && stars <= 10;
        at += is_right ? 4 : 0;
        for (first = at; (uint8_t)(*at - '0') <= 9; at++) {}
        is_right &= at > first;
        at += is_right && at[0] == '\r' && at[1] == '\n';
        is_right &= *at == '\n';
        if (is_right) {
            movies[row] = (int64_t)movie;
            half_stars[row] = stars;
            row++;
            at++;
            open = 0;
            continue;
        }
        for (; at < stop && *at != '\n'; at++)
            if (*at == '"' || (*at == '\r' && at[1] != '\n'))
                return DECLINED;
        at++;
        if (open) {
            gaps[2 * gap - 1] = (int32_t)(at - signs);
        } else {
            if (gap == room)
                return DECLINED;
            gaps[2 * gap] = (int32_t)(start - signs);
            gaps[2 * gap + 1] = (int32_t)(at - signs);
            gap++;
            open = 1;
        }
    }
    gaps[2 * gap] = DECLINED;
    return row;
}

/* DECLINED where these are not so many digits. */
static int64_t digits(const uint8_t *signs, int count) {
    int64_t number = 0;
    for (int at = 0; at < count; at++) {
        if ((uint8_t)(signs[at] - '0') > 9)
            return DECLINED;
        number = number * 10 + (signs[at] - '0');
    }
    return number;
}

/* Days since 1970 of a text like 2024-01-31; 0 and not *is_right where there is no such day. */
static int64_t day(const uint8_t *signs, int *is_right) {
    static const int64_t BEFORE_MONTH[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    int64_t year = digits(signs, 4), month = digits(signs + 5, 2), day = digits(signs + 8, 2);
    *is_right = year >= 1 && month >= 1 && month <= 12 && day >= 1 && signs[4] == '-' && signs[7] == '-';
    if (!*is_right)
        return 0;
    int64_t is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0, before = year - 1;
    *is_right = day <= BEFORE_MONTH[month] - BEFORE_MONTH[month - 1] + (is_leap && month == 2);
    int64_t years = before * 365 + before / 4 - before / 100 + before / 400; /* in days */
    return years + BEFORE_MONTH[month - 1] + (is_leap && month > 2) + day - 1 - 719162; /* 1970-01-01 */
}

/* Days since 1970, and where that is what the text says. */
void read_dates(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends, int64_t *days,
                uint8_t *are_dates) {
    for (int64_t row = 0; row < count; row++) {
        int is_right = 0;
        days[row] = ends[row] - starts[row] == 10 ? day(signs + starts[row], &is_right) : 0;
        are_dates[row] = (uint8_t)is_right;
    }
}

/* Seconds since 1970 of a text like 2024-01-31 23:59:59, and where that is what it says. */
void read_time_stamps(const uint8_t *signs, int64_t count, const int32_t *starts, const int32_t *ends,
                      int64_t *seconds, uint8_t *are_time_stamps) {
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *text = signs + starts[row];
        int is_right = 0;
        seconds[row] = 0;
        if (ends[row] - starts[row] == 19) {
            int64_t days = day(text, &is_right);
            int64_t hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
            is_right &= hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
            is_right &= text[10] == ' ' && text[13] == ':' && text[16] == ':';
            seconds[row] = is_right ? days * 86400 + hour * 3600 + minute * 60 + second : 0;
        }
        are_time_stamps[row] = (uint8_t)is_right;
    }
}
