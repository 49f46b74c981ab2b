/** No inspection format contains a secret of any machine. */
import t from 'tap';
import { type AnyStateMachine, createActor, setup } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import {
  createInspectionSource,
  createRecorder,
  createStatelySource,
  graphOf,
  mermaidOf,
  projections,
  statelyMessages,
  svgOf,
  withoutCredentials,
} from '../../src/inspect/index.ts';
import { chartNamed } from './built-charts.ts';

const marker = 'SECRET-b64f2c-9d1e';

/** Object whose every property, at every depth, is a marker. */
const secretive: unknown = new Proxy(
  { [marker]: marker },
  {
    get: (_, key) => {
      if (typeof key === 'symbol' || key === 'then') return undefined;
      if (key === 'toJSON' || key === 'toString' || key === 'valueOf') return () => marker;
      return marker;
    },
  },
);

/** Fields that may be shown: words of ours, numbers, ids of ours. We choose their values, not a user. */
function withSecrets(context: Readonly<Record<string, unknown>>, shown: ReadonlySet<string>) {
  const seeded: Record<string, unknown> = {
    apiKey: marker,
    token: marker,
    environment: { KEY: marker },
    [marker]: marker,
  };
  for (const [name, value] of Object.entries(context)) {
    // Fields that are shown keep their values; all others become secrets. An error text quotes one.
    if (name === 'lastError') seeded[name] = `refused: https://me:${marker}@host/?token=${marker}`;
    // An event that the machine raises later: it must have a type, and its payload must not leave.
    else if (name === 'deferredRequest') seeded[name] = { type: 'RESTART', secret: marker };
    else if (shown.has(name) || Array.isArray(value)) seeded[name] = value;
    else if (typeof value === 'string' || value === null) seeded[name] = marker;
    else if (typeof value === 'object') seeded[name] = { ...value, secret: marker };
    else seeded[name] = value;
  }
  return seeded;
}

/** Context fields that a projection hands on under their own name. */
function fieldsShown(name: string, context: Readonly<Record<string, unknown>>): Set<string> {
  const shown = new Set<string>();
  const spy = new Proxy(context, {
    get: (target, key) => {
      shown.add(String(key));
      return Reflect.get(target, key);
    },
  });
  projections[name]?.(spy as never);
  return shown;
}

for (const [name, machine] of Object.entries(catalogue)) {
  t.test(`${name}: records and drawings have only the permitted fields of contexts and events`, async (t) => {
    const first = createActor(machine as AnyStateMachine, { input: { policy: {}, seed: 1, phases: ['files'] } });
    const context = first.getSnapshot().context as Readonly<Record<string, unknown>>;
    const seeded = withSecrets(context, fieldsShown(name, context));
    const snapshot = (machine as AnyStateMachine).resolveState({ value: first.getSnapshot().value, context: seeded });
    const actor = createActor(machine as AnyStateMachine, { snapshot, input: {} });
    actor.subscribe({ error: () => {} });

    const recorder = createRecorder({ machines: catalogue, projections });
    const sources = [createInspectionSource(recorder), createStatelySource(recorder, catalogue)];
    const frames: Uint8Array[] = [];
    for (const source of sources) {
      source.subscribe(
        (batch) => frames.push(batch),
        () => {},
      );
    }
    recorder.observe(actor, { id: name, parent: null, machine: name, title: name });
    actor.start();
    const error = new Error(`refused: Authorization: Bearer ${marker}`);
    const payload = { secret: marker, error, output: secretive, [marker]: marker };
    for (const type of (machine as AnyStateMachine).events) actor.send({ ...payload, type });
    actor.send({ ...payload, type: `UNKNOWN.${marker}` });
    const before = recorder.snapshot();
    actor.stop();
    for (const type of (machine as AnyStateMachine).events) actor.send({ ...payload, type });
    actor.send({ ...payload, type: `UNKNOWN.${marker}` });

    const records = [...before, ...recorder.snapshot()];
    const messages = records.flatMap(statelyMessages({ machines: catalogue, actorOf: (id) => recorder.actor(id) }));
    for (const source of sources) frames.push(...source.replay(undefined));
    recorder.close();
    const chart = await chartNamed(name, machine);
    const everything = {
      records: JSON.stringify(records),
      frames: Buffer.concat(frames).toString(),
      messages: JSON.stringify(messages),
      json: JSON.stringify(chart),
      svg: svgOf(chart),
      mermaid: mermaidOf(graphOf(name, machine), { actions: true }),
    };
    t.ok(records.some(({ type }) => type === 'deadLetter') && frames.length >= 2);
    for (const [form, text] of Object.entries(everything)) t.notMatch(text, marker, form);
  });
}

t.test('a context in the definition of a machine is not sent to Stately', async (t) => {
  const machine = setup({ types: { context: {} as { readonly token: string } } }).createMachine({
    id: 'static',
    context: { token: marker },
    initial: 'a',
    states: { a: { entry: () => marker, on: { GO: { guard: () => marker.length > 0, target: 'a' } } } },
  });
  const recorder = createRecorder();
  recorder.observe(createActor(machine), { id: 's', parent: null, machine: 'static', title: 's' });
  const [frame] = createStatelySource(recorder, { static: machine }).replay(undefined);
  recorder.close();
  t.match(String(frame), '@xstate.actor');
  t.notMatch(String(frame), marker);
});

t.test('credentials in errors are redacted in each of their forms', async (t) => {
  for (const [text, expected] of [
    ['GET https://user:hunter2@host/path failed', 'GET https://…@host/path failed'],
    ['{"apiKey":"abc123","model":"m"}', '{"apiKey":"…","model":"m"}'],
    ['OPENAI_API_KEY=abc123 is not valid', 'OPENAI_API_KEY=… is not valid'],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic …'],
    ['the key sk-proj-abcdefgh12345678 was refused', 'the key … was refused'],
    [
      'Basic settings are missing: unknown key: DashBoard.Foo',
      'Basic settings are missing: unknown key: DashBoard.Foo',
    ],
    ['the turn used 300 tokens: too many', 'the turn used 300 tokens: too many'],
  ] as const) {
    t.equal(withoutCredentials(text), expected);
  }
});

t.test('a long error is processed up to its shown length only', async (t) => {
  for (const part of ['a:b@', 'a-', 'a.b+', 'key_', 'http://', 'Bearer ']) {
    t.ok((withoutCredentials(`${part.repeat(500_000)} token=${marker}`) ?? '').length <= 4_096, part);
  }
});
