"""One upload from folder to answers, as `cauce upload` does it: connect, upload, answers, report.

Invariant: at any moment either OUT holds a note from which --resume goes on, or there is nothing to resume.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cauce.query_names import full_name
from producer_client import notes, report
from producer_client.api import Client, Session
from producer_client.errors import ClientError, QueryFailed, Refused, SessionGone, WrongUsage
from producer_client.folder import STANDARD_INPUT, Choice, FileKind, Source, find, lying_there
from producer_client.gateways import Timing
from producer_client.progress import Show
from producer_client.report import Phases, Report
from producer_client.state import QueryState, SessionState, UploadState


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asked for."""

    dataset: str
    folder: Path
    out: Path
    gateways: tuple[str, ...]
    scope: Literal["us", "all"] | None = None
    model: str | None = None
    queries: tuple[str, ...] | None = None  # None: all of the dataset
    resume: bool = False
    fresh: bool = False
    keep: bool = False
    ca: Path | None = None
    choice: Choice = field(default_factory=Choice)
    cluster_stays: bool = True  # else nothing can be gone on with, and nothing is noted


def carry_out(order: Order, timing: Timing, show: Show) -> Report:
    """Send, wait, write; the report says which queries have an answer and which files were refused."""
    phases = Phases()
    note = _note(order)
    gateways = order.gateways or tuple(note.gateways if note else ())
    with Client(gateways, timing=timing, watcher=show, ca=order.ca) as client:
        with phases.phase("connect"):
            if note and not order.resume:
                _forget(client, order, note)
                note = None
            session, sources = _resumed(client, order, note) if note else _opened(client, order, gateways)
            for kind in lying_there(order.folder, session.files_not_read):
                show.tell(f"{kind.filename} is not sent: {session.why_not_read(kind)}")
        with phases.phase("upload"):
            refused = session.upload_sources(sources)
            notes.mark_sent(order.out, [each.name for each in sources if not each.kind.is_folder])
        with phases.phase("answers"):
            ended, saved = _answers(session, order.out, show, _settle_seconds(session, refused, timing))
            state = _last_state(session, bool(refused))
        done = Report(
            client_id=session.client_id,
            dataset=session.dataset,
            options=session.options,
            files=report.files_of(
                state,
                _kinds(sources, state),
                {name: str(error) for name, error in refused.items()},
            ),
            stages=list(state.files) if state else [],
            queries=report.queries_of(session.queries, ended, saved),
            seconds=phases.total(),
            gateways=list(session.gateways_used),
            resumed=note is not None,
        )
        done.write(order.out)
        if order.cluster_stays and _may_be_mended(refused, state):
            notes.mark_refused(order.out, refused)
            return done
        if not order.keep:
            with suppress(ClientError):  # all is written; what is left in the cluster expires
                session.close()
        notes.remove(order.out)
        return done


def _note(order: Order) -> notes.Note | None:
    if order.resume and order.fresh:
        raise WrongUsage("--resume goes on with an upload and --fresh begins again; give one of them")
    if order.resume and not order.cluster_stays:
        raise WrongUsage("a cluster of its own begins and ends with this command; leave --resume out, or give --home")
    note = notes.read(order.out)
    if note is None:
        if order.resume:
            raise WrongUsage(f"{order.out} holds no upload to go on with; leave --resume out")
        return None
    if not order.resume and not order.fresh and not note.refused:
        raise WrongUsage(
            f"{order.out} holds an upload that has not ended; go on with --resume, or give it up with --fresh"
        )
    if order.resume:
        _same(order, note)
    return note


def _same(order: Order, note: notes.Note) -> None:
    options = note.ticket["options"]
    began_with = ",".join(sorted(note.ticket["queries"]))
    pairs = [
        ("dataset", order.dataset, note.ticket["dataset"]),
        ("folder", str(order.folder.resolve()), note.folder),
        ("--scope", order.scope or options.get("scope"), options.get("scope")),
        ("--model", order.model or options.get("model"), options.get("model")),
        ("--queries", _queries_of(order) or began_with, began_with),
        ("--separator", _told(order.choice.separators) or _told(note.separators), _told(note.separators)),
    ]
    for what, asked, began in pairs:
        if asked != began:
            raise WrongUsage(
                f"the upload in {order.out} began with the {what} {began}, not {asked}; use it, or --fresh"
            )


def _queries_of(order: Order) -> str:
    return ",".join(sorted({full_name(order.dataset, name) for name in order.queries or ()}))


def _told(separators: Mapping[str, str]) -> str:
    """The options, as a message names them."""
    return ", ".join(repr(f"{kind}={separator}" if kind else separator) for kind, separator in separators.items())


def _opened(client: Client, order: Order, gateways: tuple[str, ...]) -> tuple[Session, list[Source]]:
    # A session is opened when there is something to upload: an empty one takes somebody's place, and ends soon.
    sources = find(order.folder, client.kinds(order.dataset, order.queries), order.choice)
    session = client.open(order.dataset, queries=order.queries, scope=order.scope, model=order.model)
    report.remove_old(order.out, order.dataset)
    folder, fingerprints = str(order.folder.resolve()), notes.fingerprints_of(sources)
    separators = dict(order.choice.separators)
    if order.cluster_stays:
        notes.write(order.out, notes.Note(session.ticket, list(gateways), folder, fingerprints, separators))
    return session, sources


def _resumed(client: Client, order: Order, note: notes.Note) -> tuple[Session, list[Source]]:
    try:
        session = client.resume(note.ticket)
    except SessionGone as error:
        raise SessionGone(f"{error}; begin again with --fresh", error.status) from None
    order.choice.check(session.files)
    uploads = session.state().uploads
    kinds = _without_piped(order, session, uploads)
    sources = find(order.folder, kinds, replace(order.choice, separators=note.separators).of(kinds))
    refused = {*note.refused, *(upload.name for upload in uploads if upload.state == "failed" and not upload.offset)}
    unchanged = {source.name for source in sources if note.is_of(source)}
    known = {*note.fingerprints, *refused, *(upload.name for upload in uploads)}
    for source in sources:
        if source.name not in known:
            raise WrongUsage(_is_new(source, refused - {each.name for each in sources}))
        if source.name not in unchanged | refused:
            raise WrongUsage(f"{source.name} was changed since the upload began; begin again with --fresh")
    for upload in uploads:
        if upload.name in refused - unchanged and not upload.offset:
            session.remove(upload.name)  # it was put right, or taken out of its folder
    notes.write(order.out, replace(note, fingerprints=notes.fingerprints_of(sources), refused=[]))
    return session, sources


def _is_new(source: Source, gone: Collection[str]) -> str:
    """What is said of a file that the upload did not begin with; `gone` are refused files that are not there now."""
    folder = f"{source.kind.kind}/"
    former = " or ".join(sorted(name for name in gone if source.kind.is_folder and name.startswith(folder)))
    advice = f"rename it to {former}, which was refused," if former else "take it away,"
    return f"{source.name} is new since the upload began; {advice} or begin again with --fresh"


def _without_piped(order: Order, session: Session, uploads: Sequence[UploadState]) -> list[FileKind]:
    """The kinds that are still to be sent: what was piped in is there whole, or cannot be gone on with."""
    kinds = []
    for kind in session.files:
        is_piped = any(str(path) == STANDARD_INPUT for path in order.choice.paths.get(kind.kind, ()))
        begun = [upload for upload in uploads if upload.kind == kind.kind and upload.offset]
        if not is_piped or not begun:
            kinds.append(kind)
        elif kind.is_folder or begun[0].state != "complete":
            raise WrongUsage(
                f"{kind.kind} came by standard input, of which nobody kept the beginning: it cannot be gone on with; "
                "begin again with --fresh"
            )
    return kinds


def _forget(client: Client, order: Order, note: notes.Note) -> None:
    """An upload that is given up; if nobody can be told, it expires."""
    with suppress(ClientError):
        client.resume(note.ticket).close()
    notes.remove(order.out)


def _settle_seconds(session: Session, refused: Mapping[str, Refused], timing: Timing) -> float | None:
    """None: every query ends by itself, one that needs a failed upload too. But a refused file that no gateway knows
    of, because it was not even begun, leaves its queries waiting for ever."""
    state = _last_state(session, bool(refused))
    failed = {upload.name for upload in state.uploads if upload.state == "failed"} if state else set()
    return None if failed >= set(refused) else timing.settle


def _answers(
    session: Session, out: Path, show: Show, settle_seconds: float | None
) -> tuple[dict[str, QueryState], dict[str, Path]]:
    ended: dict[str, QueryState] = {}
    saved: dict[str, Path] = {}
    try:
        for state in session.watch(settle_seconds):
            ended[state.query] = state
            if state.state == "failed":
                continue
            try:
                saved[state.query] = session.save_answer(state.query, out / f"{state.query}.csv")
                show.answered(state.query, len(saved), len(session.queries))
            except QueryFailed as error:
                ended[state.query] = QueryState(state.query, "failed", str(error))
    except Refused:
        if settle_seconds is None:
            raise  # with a refused file the session may have ended: what was answered is written
    return ended, saved


def _kinds(sources: Sequence[Source], state: SessionState | None) -> dict[str, tuple[str, int]]:
    """Kind and bytes of every file, by its name; what an earlier run has piped in, too."""
    earlier = {upload.name: (upload.kind, upload.offset) for upload in state.uploads} if state else {}
    now = {source.name: (source.kind.kind, source.length or 0) for source in sources}
    return now | {name: value for name, value in earlier.items() if name not in now}


def _may_be_mended(refused: Mapping[str, Refused], state: SessionState | None) -> bool:
    """Whether every refused file can be replaced in this session: of none was anything taken."""
    if state is None or not refused:
        return False
    return not any(upload.offset for upload in state.uploads if upload.name in refused)


def _last_state(session: Session, excused: bool) -> SessionState | None:
    """The final counts of rows."""
    try:
        return session.state()
    except Refused:
        if excused:
            return None
        raise
