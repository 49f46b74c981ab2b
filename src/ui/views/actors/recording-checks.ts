/** Checks of the shapes of a recording, by hand: the page ships no validator. */
import type { Chart, ChartEdge, ChartNode, InspectionRecord, StateStatistics } from '../../../protocol/index.ts';
import type { Actor } from './model.ts';

/** Reason why a file was not opened. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  constructor(reason: string) {
    super(`This file cannot be opened: ${reason}.`);
  }
}

type Fields = Record<string, unknown>;
type Check<T> = (value: unknown, place: string) => T;

const mostTexts = 1_000;
const mostChars = 4_096;

const text: Check<string> = (value, place) => {
  if (typeof value !== 'string' || value.length > mostChars)
    throw new Refusal(`${place} is not a text of moderate length`);
  return value;
};
const number: Check<number> = (value, place) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Refusal(`${place} is not a number`);
  return value;
};
const flag: Check<boolean> = (value, place) => {
  if (typeof value !== 'boolean') throw new Refusal(`${place} is neither true nor false`);
  return value;
};
/** Returns a date, or the time that a text names; undefined when it is neither. */
export function timeOf(value: unknown): Date | undefined {
  const at = value instanceof Date ? value : new Date(typeof value === 'string' ? value : Number.NaN);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
const date: Check<Date> = (value, place) => {
  const at = timeOf(value);
  if (!at) throw new Refusal(`${place} is not a time`);
  return at;
};
const fields: Check<Fields> = (value, place) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refusal(`${place} is not an object`);
  return value as Fields;
};
const nullable =
  <T>(check: Check<T>): Check<T | null> =>
  (value, place) =>
    value === null ? null : check(value, place);
const list =
  <T>(check: Check<T>, most = mostTexts): Check<T[]> =>
  (value, place) => {
    if (!Array.isArray(value) || value.length > most) throw new Refusal(`${place} is not a list of moderate length`);
    return value.map((each, index) => check(each, `${place}[${index}]`));
  };
const texts = list(text);

/** @param isDate whether the fact of this name is a time */
export function checkRecord(value: unknown, place: string, isDate: (fact: string) => boolean): InspectionRecord {
  const record = fields(value, place);
  const { type } = record;
  const take = <T>(check: Check<T>, name: string): T => check(record[name], `${place}.${name}`);
  const projection = () => facts(record['projection'], `${place}.projection`, isDate);
  const maybe = <T>(check: Check<T>, name: string): T | undefined =>
    record[name] === undefined ? undefined : take(check, name);
  const common = () => ({ id: take(text, 'id'), at: take(date, 'at') });
  if (type === 'actor') {
    const [endedAt, restarts] = [maybe(date, 'endedAt'), maybe(number, 'restarts')];
    return {
      type,
      ...common(),
      parent: take(nullable(text), 'parent'),
      machine: take(text, 'machine'),
      title: take(text, 'title'),
      states: take(texts, 'states'),
      projection: projection(),
      steps: take(number, 'steps'),
      since: take(date, 'since'),
      statistics: take(statistics, 'statistics'),
      ...(endedAt && { endedAt }),
      ...(restarts !== undefined && { restarts }),
    };
  }
  if (type === 'transition') {
    const entered = maybe(texts, 'entered');
    return {
      type,
      ...common(),
      step: take(number, 'step'),
      event: take(text, 'event'),
      source: take(nullable(text), 'source'),
      edges: take(texts, 'edges'),
      from: take(texts, 'from'),
      to: take(texts, 'to'),
      ...(entered && { entered }),
      actions: take(texts, 'actions'),
      projection: projection(),
    };
  }
  if (type === 'deadLetter')
    return { type, ...common(), event: take(text, 'event'), source: take(nullable(text), 'source') };
  if (type === 'gone') {
    const error = maybe(text, 'error');
    return { type, ...common(), ...(error !== undefined && { error }) };
  }
  throw new Refusal(`${place} is of an unknown type`);
}

function facts(value: unknown, place: string, isDate: (fact: string) => boolean): Actor['projection'] {
  const checked: Actor['projection'] = {};
  for (const [name, fact] of Object.entries(fields(value, place))) {
    if (isDate(name) || fact instanceof Date) checked[name] = date(fact, `${place}.${name}`);
    else if (fact === null || typeof fact === 'boolean') checked[name] = fact;
    else checked[name] = typeof fact === 'number' ? number(fact, place) : text(fact, `${place}.${name}`);
  }
  return checked;
}

const statistics: Check<Record<string, StateStatistics>> = (value, place) =>
  Object.fromEntries(
    Object.entries(fields(value, place)).map(([state, counts]) => {
      const { visits, ms } = fields(counts, `${place}.${state}`);
      return [state, { visits: number(visits, `${place}.${state}`), ms: number(ms, `${place}.${state}`) }];
    }),
  );

const point: Check<{ x: number; y: number }> = (value, place) => {
  const { x, y } = fields(value, place);
  return { x: number(x, place), y: number(y, place) };
};

const oneOf =
  <T extends string>(...words: readonly T[]): Check<T> =>
  (value, place) => {
    const known = words.find((each) => each === value);
    if (!known) throw new Refusal(`${place} is unknown`);
    return known;
  };
const kind = oneOf('atomic', 'compound', 'parallel', 'final', 'history');
const lane = oneOf('detour', 'spine', 'exception', 'end');
const work = oneOf('thinks', 'works', 'asks', 'pauses', 'failed', 'serves', 'unwell', 'rests', 'ended');
const meta: Check<ChartNode['meta'] & object> = (value, place) => {
  const of = fields(value, place);
  return { kind: work(of['kind'], place), lane: lane(of['lane'], place), order: number(of['order'], place) };
};

const node: Check<ChartNode> = (value, place) => {
  const of = fields(value, place);
  return {
    id: text(of['id'], `${place}.id`),
    parent: nullable(text)(of['parent'], `${place}.parent`),
    label: text(of['label'], `${place}.label`),
    description: text(of['description'], `${place}.description`),
    kind: kind(of['kind'], `${place}.kind`),
    initial: flag(of['initial'], `${place}.initial`),
    ...(of['meta'] !== undefined && { meta: meta(of['meta'], `${place}.meta`) }),
    invokes: texts(of['invokes'], `${place}.invokes`),
    entry: texts(of['entry'], `${place}.entry`),
    exit: texts(of['exit'], `${place}.exit`),
    x: number(of['x'], `${place}.x`),
    y: number(of['y'], `${place}.y`),
    width: number(of['width'], `${place}.width`),
    height: number(of['height'], `${place}.height`),
  };
};

const edge: Check<ChartEdge> = (value, place) => {
  const of = fields(value, place);
  return {
    id: text(of['id'], `${place}.id`),
    source: text(of['source'], `${place}.source`),
    target: text(of['target'], `${place}.target`),
    event: text(of['event'], `${place}.event`),
    guard: nullable(text)(of['guard'], `${place}.guard`),
    actions: texts(of['actions'], `${place}.actions`),
    label: text(of['label'], `${place}.label`),
    labelAt: point(of['labelAt'], `${place}.labelAt`),
    points: list(point)(of['points'], `${place}.points`),
    ...(of['delayMs'] !== undefined && { delayMs: number(of['delayMs'], `${place}.delayMs`) }),
  };
};

export const checkChart: Check<Chart> = (value, place) => {
  const of = fields(value, place);
  return {
    name: text(of['name'], `${place}.name`),
    description: text(of['description'], `${place}.description`),
    width: number(of['width'], `${place}.width`),
    height: number(of['height'], `${place}.height`),
    nodes: list(node, 2_000)(of['nodes'], `${place}.nodes`),
    edges: list(edge, 5_000)(of['edges'], `${place}.edges`),
  };
};
