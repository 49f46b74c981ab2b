/**
 * The parts of OTLP that are read: names, times and attributes of log records and spans, in the JSON mapping of the protocol.
 * A body comes from an agent, which is not trusted: another shape is refused, and unknown fields are ignored.
 */
import * as v from 'valibot';
import { HttpError } from '../../http/index.ts';

export const signals = ['traces', 'logs', 'metrics'] as const;
export type Signal = (typeof signals)[number];

/** A log record or a span. */
export interface ExportedRecord {
  /** Name of the event or of the span. */
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string | number | boolean>;
  /** In milliseconds since the Unix epoch; undefined: not stated. */
  readonly endedAt: number | undefined;
  /** Duration of a span; undefined: not stated. */
  readonly durationMs: number | undefined;
}

/** 64-bit numbers are texts in JSON. */
const Whole = v.union([v.number(), v.pipe(v.string(), v.maxLength(24))]);
const Value = v.object({
  stringValue: v.optional(v.string()),
  boolValue: v.optional(v.boolean()),
  intValue: v.optional(Whole),
  doubleValue: v.optional(Whole),
});
const Attributes = v.optional(v.array(v.object({ key: v.string(), value: v.optional(Value) })), []);

const LogRecord = v.object({
  timeUnixNano: v.optional(Whole),
  observedTimeUnixNano: v.optional(Whole),
  eventName: v.optional(v.string()),
  attributes: Attributes,
});
const Span = v.object({
  name: v.optional(v.string(), ''),
  startTimeUnixNano: v.optional(Whole),
  endTimeUnixNano: v.optional(Whole),
  attributes: Attributes,
});
const listOf = <T extends v.GenericSchema>(schema: T) => v.optional(v.array(schema), []);
const Logs = v.object({
  resourceLogs: listOf(v.object({ scopeLogs: listOf(v.object({ logRecords: listOf(LogRecord) })) })),
});
const Traces = v.object({ resourceSpans: listOf(v.object({ scopeSpans: listOf(v.object({ spans: listOf(Span) })) })) });
const Metrics = v.object({
  resourceMetrics: listOf(
    v.object({ scopeMetrics: listOf(v.object({ metrics: listOf(v.object({ name: v.optional(v.string(), '') })) })) }),
  ),
});

/**
 * Records of one export request.
 *
 * @param body request in the JSON mapping
 * @throws HttpError 400 `invalidRequest` for another shape, 413 `tooManyRecords`
 */
export function recordsOf(signal: Signal, body: unknown, maxRecords: number): readonly ExportedRecord[] {
  const records = read(signal, body);
  if (records.length <= maxRecords) return records;
  throw new HttpError(
    413,
    'tooManyRecords',
    `A request may have ${maxRecords} records; this one has ${records.length}.`,
  );
}

function read(signal: Signal, body: unknown): readonly ExportedRecord[] {
  switch (signal) {
    case 'logs':
      return shaped(Logs, body).resourceLogs.flatMap(({ scopeLogs }) =>
        scopeLogs.flatMap(({ logRecords }) => logRecords.map(logRecord)),
      );
    case 'traces':
      return shaped(Traces, body).resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap(({ spans }) => spans.map(span)),
      );
    case 'metrics':
      return shaped(Metrics, body).resourceMetrics.flatMap(({ scopeMetrics }) =>
        scopeMetrics.flatMap(({ metrics }) =>
          metrics.map(({ name }) => ({ name, attributes: new Map(), endedAt: undefined, durationMs: undefined })),
        ),
      );
  }
}

function shaped<T extends v.GenericSchema>(schema: T, body: unknown): v.InferOutput<T> {
  const parsed = v.safeParse(schema, body, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const path = v.getDotPath(parsed.issues[0]) ?? 'the body';
  throw new HttpError(400, 'invalidRequest', `This is not an OTLP request: ${path.slice(0, 200)} has another shape.`);
}

function logRecord(record: v.InferOutput<typeof LogRecord>): ExportedRecord {
  const attributes = attributesOf(record.attributes);
  const name = record.eventName || String(attributes.get('event.name') ?? '');
  const endedAt = millisecondsOf(record.timeUnixNano) ?? millisecondsOf(record.observedTimeUnixNano);
  return { name, attributes, endedAt, durationMs: undefined };
}

function span(given: v.InferOutput<typeof Span>): ExportedRecord {
  const startedAt = millisecondsOf(given.startTimeUnixNano);
  const endedAt = millisecondsOf(given.endTimeUnixNano);
  const durationMs = startedAt === undefined || endedAt === undefined ? undefined : Math.max(0, endedAt - startedAt);
  return { name: given.name, attributes: attributesOf(given.attributes), endedAt, durationMs };
}

/** Scalar attributes; lists and nested values are ignored. */
function attributesOf(given: v.InferOutput<typeof Attributes>): ExportedRecord['attributes'] {
  const known = new Map<string, string | number | boolean>();
  for (const { key, value } of given) {
    const plain = value && (value.stringValue ?? value.boolValue ?? numberOf(value.intValue ?? value.doubleValue));
    if (plain !== undefined) known.set(key, plain);
  }
  return known;
}

const numberOf = (whole: number | string | undefined): number | undefined =>
  whole === undefined || whole === '' ? undefined : Number(whole);

/** 0 is "unknown" in the protocol. A number of nanoseconds has lost its last digits. */
function millisecondsOf(nanoseconds: number | string | undefined): number | undefined {
  const digits = typeof nanoseconds === 'string' ? nanoseconds : String(Math.round(nanoseconds ?? 0));
  const ms = /^\d{7,20}$/.test(digits) ? Number(digits.slice(0, -6)) : 0;
  return Number.isSafeInteger(ms) && ms > 0 ? ms : undefined;
}
