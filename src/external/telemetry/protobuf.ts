/**
 * Reads export requests in Protocol Buffers into their JSON mapping, by a table of the fields that are used
 * (opentelemetry-proto 1.x). The table bounds the depth: a field that it does not name is skipped.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { Signal } from './otlp.ts';

type Scalar = 'string' | 'bool' | 'int64' | 'double' | 'fixed64';

interface Field {
  readonly name: string;
  readonly type: Scalar | Message;
  readonly isList?: boolean;
}

type Message = Readonly<Record<number, Field>>;

const list = (name: string, type: Message): Field => ({ name, type, isList: true });

const anyValue: Message = {
  1: { name: 'stringValue', type: 'string' },
  2: { name: 'boolValue', type: 'bool' },
  3: { name: 'intValue', type: 'int64' },
  4: { name: 'doubleValue', type: 'double' },
};
const keyValue: Message = { 1: { name: 'key', type: 'string' }, 2: { name: 'value', type: anyValue } };
const logRecord: Message = {
  1: { name: 'timeUnixNano', type: 'fixed64' },
  6: list('attributes', keyValue),
  11: { name: 'observedTimeUnixNano', type: 'fixed64' },
  12: { name: 'eventName', type: 'string' },
};
const span: Message = {
  5: { name: 'name', type: 'string' },
  7: { name: 'startTimeUnixNano', type: 'fixed64' },
  8: { name: 'endTimeUnixNano', type: 'fixed64' },
  9: list('attributes', keyValue),
};
const metric: Message = { 1: { name: 'name', type: 'string' } };

const requests: Readonly<Record<Signal, Message>> = {
  logs: { 1: list('resourceLogs', { 2: list('scopeLogs', { 2: list('logRecords', logRecord) }) }) },
  traces: { 1: list('resourceSpans', { 2: list('scopeSpans', { 2: list('spans', span) }) }) },
  metrics: { 1: list('resourceMetrics', { 2: list('scopeMetrics', { 2: list('metrics', metric) }) }) },
};

const wireTypes: Readonly<Record<Scalar, WireType>> = {
  string: WireType.LengthDelimited,
  bool: WireType.Varint,
  int64: WireType.Varint,
  double: WireType.Bit64,
  fixed64: WireType.Bit64,
};

/** @throws Error for bytes that are not a message of this signal */
export const decodeRequest = (signal: Signal, bytes: Uint8Array): unknown => decode(requests[signal], bytes);

function decode(message: Message, bytes: Uint8Array): Record<string, unknown> {
  const reader = new BinaryReader(bytes);
  const value: Record<string, unknown> = {};
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = message[number];
    if (!field) reader.skip(wireType, number);
    else if (wireType === wireTypeOf(field)) put(value, field, read(reader, field.type));
    else throw new Error(`field ${number} has another type`);
  }
  if (reader.pos > reader.len) throw new Error('it ends too early');
  return value;
}

const wireTypeOf = ({ type }: Field): WireType =>
  typeof type === 'string' ? wireTypes[type] : WireType.LengthDelimited;

function put(value: Record<string, unknown>, { name, isList }: Field, one: unknown): void {
  const before = value[name];
  if (!isList) value[name] = one;
  else if (Array.isArray(before)) before.push(one);
  else value[name] = [one];
}

function read(reader: BinaryReader, type: Field['type']): unknown {
  switch (type) {
    case 'string':
      return reader.string();
    case 'bool':
      return reader.bool();
    case 'int64':
      return String(reader.int64());
    case 'double':
      return reader.double();
    case 'fixed64':
      return String(reader.fixed64());
    default:
      return decode(type, reader.bytes());
  }
}
