/**
 * A recording: a JSON file with everything this page holds, for a bug report. It is opened in the
 * user's own browser only. A file may come from anywhere, so all of it is checked before any of it is shown.
 */
import superjson, { type SuperJSONResult } from 'superjson';
import type { ActorRecord, Chart, InspectionRecord } from '../../../protocol/index.ts';
import { type Actor, type Actors, apply, noActors } from './model.ts';
import { checkChart, checkRecord, Refusal, timeOf } from './recording-checks.ts';

export interface Recording {
  /** Origin: version of the server, its workspace. */
  readonly about: Readonly<Record<string, string>>;
  readonly recordedAt: Date;
  readonly charts: readonly Chart[];
  readonly records: readonly InspectionRecord[];
}

export const recordingLimits = { bytes: 32 * 1024 * 1024, records: 50_000, charts: 100 } as const;

const format = 'oratorio-recording';
/** Version 2 is superjson. Version 1 was JSON with a list of the facts that are dates; it is still read. */
const version = 2;

/** All stored records, in an order in which a viewer can apply them. */
export function recordsOf(actors: Actors): InspectionRecord[] {
  const all = [...actors.byId.values()];
  const events = [
    ...all.flatMap((actor) => actor.log.map(({ at, n, record }) => ({ at, n, record: record as InspectionRecord }))),
    ...actors.deadLetters.map(({ at, n, record }) => ({ at, n, record: record as InspectionRecord })),
    ...all.flatMap(({ id, ending }) => {
      if (!ending) return [];
      const { at, n, error } = ending;
      const record: InspectionRecord = { type: 'gone', id, at: new Date(at), ...(error !== null && { error }) };
      return [{ at, n, record }];
    }),
  ].sort((a, b) => a.at - b.at || a.n - b.n);
  return [...all.map(actorRecord), ...events.map(({ record }) => record)];
}

function actorRecord(actor: Actor): ActorRecord {
  const { id, parent, machine, title, states, projection, steps, since, statistics, createdAt, ending, restarts } =
    actor;
  return {
    type: 'actor',
    id,
    parent,
    machine,
    title,
    states: [...states],
    at: createdAt,
    projection,
    steps,
    since,
    statistics,
    ...(ending && { endedAt: new Date(ending.at) }),
    ...(restarts > 0 && { restarts }),
  };
}

/** Returns the text of a recording: superjson, so that dates among the facts stay dates. */
export function writeRecording(recording: Recording): string {
  const { about, recordedAt, charts, records } = recording;
  return `${superjson.stringify({ format, version, about, recordedAt, charts, records })}\n`;
}

/** Reads a recording of version 1 or 2. @throws Refusal with the fault, for people */
export function readRecording(text: string): Recording {
  if (text.length > recordingLimits.bytes) throw new Refusal('it is larger than 32 MiB');
  const raw = parsed(text);
  const file = 'json' in raw ? revived(raw) : raw;
  if (file['format'] !== format) throw new Refusal('it is no recording of this page');
  const expected = 'json' in raw ? version : 1;
  if (file['version'] !== expected)
    throw new Refusal(`its version is ${String(file['version'])}, this page reads ${version} and 1`);
  const recordedAt = timeOf(file['recordedAt']);
  if (!recordedAt) throw new Refusal('its creation time is missing');
  const dates = new Set(
    expected === 1 ? listOf(file, 'dates', recordingLimits.records).map((place) => String(place)) : [],
  );
  return {
    about: aboutOf(file['about']),
    recordedAt,
    charts: listOf(file, 'charts', recordingLimits.charts).map((chart, index) => checkChart(chart, `charts[${index}]`)),
    records: listOf(file, 'records', recordingLimits.records).map((record, index) =>
      checkRecord(record, `records[${index}]`, (name) => dates.has(`${index},${name}`)),
    ),
  };
}

/** The actors at the time of the recording. */
export const actorsOf = ({ records }: Recording): Actors => apply(noActors, records, 0);

function parsed(text: string): Record<string, unknown> {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Refusal('it is not JSON');
  }
  return objectOf(file);
}

/** Restores the values that superjson annotated. A forged annotation can only change types, and all values are checked later. */
function revived(raw: Record<string, unknown>): Record<string, unknown> {
  let file: unknown;
  try {
    file = superjson.deserialize(raw as unknown as SuperJSONResult);
  } catch {
    throw new Refusal('its annotations are not those of superjson');
  }
  return objectOf(file);
}

function objectOf(file: unknown): Record<string, unknown> {
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new Refusal('it is not an object');
  return file as Record<string, unknown>;
}

function listOf(file: Record<string, unknown>, name: string, most: number): unknown[] {
  const list = file[name];
  if (!Array.isArray(list)) throw new Refusal(`${name} is not a list`);
  if (list.length > most) throw new Refusal(`${name} has more than ${most} entries`);
  return list;
}

function aboutOf(about: unknown): Record<string, string> {
  if (typeof about !== 'object' || about === null) return {};
  const texts = Object.entries(about).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(texts.slice(0, 20).map(([name, text]) => [name.slice(0, 100), text.slice(0, 1000)]));
}
