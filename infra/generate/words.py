"""The words that generated films are made of: names with both kinds of quotes, many alphabets, clear feelings."""

COUNTRIES = {
    "Argentina": "AR",
    "Brazil": "BR",
    "Canada": "CA",
    "Chile": "CL",
    "Côte d'Ivoire": "CI",
    "France": "FR",
    "Germany": "DE",
    "India": "IN",
    "Italy": "IT",
    "Japan": "JP",
    "Mexico": "MX",
    "Spain": "ES",
    "United Kingdom": "GB",
    "United States of America": "US",
    "Uruguay": "UY",
}
USA = "United States of America"
COUNTRY_SETS: tuple[tuple[str, ...], ...] = (  # drawn with equal chance, so repeated ones are frequent
    *((USA,),) * 14,
    *((USA, "United Kingdom"), (USA, "Germany"), (USA, "Canada"), ("France", USA)),
    *(("Argentina",),) * 4,
    *(("Argentina", "Spain"),) * 3,
    *(("Spain", "Argentina"), ("Argentina", "France", "Spain"), ("Argentina", "Uruguay"), ("Argentina", USA)),
    *(("Spain",), ("France",), ("France",), ("United Kingdom",), ("United Kingdom",), ("India",), ("Japan",)),
    *(("Italy",), ("Germany",), ("Mexico",), ("Brazil", "Chile"), ("Côte d'Ivoire",), ("France", "Italy")),
    *((), (), ()),
)
LANGUAGES = {
    "English": "en",
    "Español": "es",
    "Français": "fr",
    "Deutsch": "de",
    "Italiano": "it",
    "Português": "pt",
    "日本語": "ja",
    "हिन्दी": "hi",
    "Pусский": "ru",
    "العربية": "ar",
}
SPOKEN = {
    "Argentina": "Español",
    "Brazil": "Português",
    "Canada": "English",
    "Chile": "Español",
    "Côte d'Ivoire": "Français",
    "France": "Français",
    "Germany": "Deutsch",
    "India": "हिन्दी",
    "Italy": "Italiano",
    "Japan": "日本語",
    "Mexico": "Español",
    "Spain": "Español",
    "United Kingdom": "English",
    "United States of America": "English",
    "Uruguay": "Español",
}
GENRES = {
    "Action": 28,
    "Adventure": 12,
    "Animation": 16,
    "Comedy": 35,
    "Crime": 80,
    "Documentary": 99,
    "Drama": 18,
    "Family": 10751,
    "Fantasy": 14,
    "Foreign": 10769,
    "Horror": 27,
    "Music": 10402,
    "Mystery": 9648,
    "Romance": 10749,
    "Science Fiction": 878,
    "Thriller": 53,
}
COMPANIES = (
    "Río Abajo Films",
    "Twelve Lanterns",
    "O'Malley & Sons",
    'Studio "K"',
    "Lumière du Nord",
    "Patagonik Sur",
    "Nippon 9",
    "Ñandú Cine",
    "Harbour, Light & Co.",
)
TITLE_STARTS = (
    "The Last",
    "A Silent",
    "Return of the",
    "Beyond the",
    "My",
    "One",
    "El",
    "La",
    "Les",
    "Midnight",
    "Summer of the",
    "Who's Afraid of the",
)
TITLE_ENDS = (
    "River",
    "Lighthouse",
    "Thief",
    "Ciénaga",
    "Corazón",
    "Année",
    "Machine",
    "Orchard",
    "Garçon",
    "Winter",
    "Tango",
    "Stranger",
    "東京",
    "Ghost",
    "Parade",
    "Señora",
)
TITLE_TAILS = ("", "", "", "", "", " II", ", or the Long Way Home", ": Part 2", ' "Redux"', "!", " (Director's Cut)")
HEROES = ("a young doctor", "an old fisherman", "a retired spy", "two sisters", "Lucía", "O'Brien", "a lonely clerk")
PLACES = ("in Buenos Aires", "in a small town", "on the coast of Galicia", "in New York", "in 1943", "near the border")
PLOTS = (
    "{hero} finds a letter {place}",
    "{hero} and a stranger cross the country",
    "{hero} opens a café {place}",
    '{hero}, known as "the quiet one", comes back {place}',
    "{hero} takes a train that leads nowhere",
    "{hero} must decide whom to trust {place}",
)
GLAD = (
    "A wonderful, charming and funny story of love and friendship.",
    "Brilliant acting and beautiful images make this a joyful delight.",
    "An excellent, warm and moving film that celebrates hope.",
    "The best family adventure: fresh, smart and full of heart.",
)
SAD = (
    "A terrible, boring mess of violence and despair.",
    "The worst nightmare begins: murder, hate and a horrible death.",
    "A dull and painful story of failure, grief and cruel lies.",
    "Everything goes wrong in this awful, stupid disaster.",
)
ASIDES = (
    "It is based on a true story.",
    "Part one of three.",
    "— from the novel of the same name…",
    "Español y English.",
)
TAGLINES = ("", "", "", "Still waiting.", "Love, death & taxes", '"Never again," they said.', "¿Quién mira?")
FIRST_NAMES = (
    "Ana",
    "Ben",
    "Chloë",
    "Dmitri",
    "Émile",
    "Fatima",
    "Grace",
    "Hiroshi",
    "Inés",
    "Jack",
    "Karen",
    "Leonardo",
    "Mia",
    "Noah",
    "Olga",
    "Peter",
    "Quentin",
    "Rosa",
    "Søren",
    "Tom",
    "Uma",
    'William "Bill"',
    "Xu",
    "Zoë",
)
LAST_NAMES = (
    "Adams",
    "Baker",
    "Castro",
    "D'Angelo",
    "Eriksson",
    "Fischer",
    "García",
    "Hughes",
    "Ivanov",
    "Jones",
    "Kurosawa",
    "López",
    "Müller",
    "Nguyễn",
    "O'Hara",
    "Pérez",
    "Quinn",
    "Ruiz",
    "Smith",
    "Torres",
    "Ünal",
    "Vázquez",
    "Wong",
    "Žižka",
)
ARGENTINE_ACTORS = tuple(
    f"{first} {last}"
    for last in ("Darín Ruiz", "Awada Sol", "Efrón Paz", "Sbarra", "O'Connor", "Peretti Mar", "Echagüe")
    for first in ("Ricardo", "Valeria", "Inés", "Rodrigo", 'Norma "Negra"', "Ángel")
)
ROLES = ("Himself", "The Captain", "Mother", "Detective O'Neill", 'Johnny "Two Hats"', "Niña", "Voice (uncredited)", "")
CREW_WORK = (
    ("Directing", "Director"),
    ("Writing", "Screenplay"),
    ("Sound", "Original Music Composer"),
    ("Art", "Props"),
)
