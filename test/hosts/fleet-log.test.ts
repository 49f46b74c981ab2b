import t, { type Test } from 'tap';
import { FleetLog } from '../../src/hosts/index.ts';
import { defaults } from '../../src/protocol/index.ts';

const event = (title: string) => ({
  ...{ kind: 'notification.requested', at: '2026-01-01T00:00:00.000Z', workspacePath: null },
  data: { title },
});

/** Parsed fields of the frames. */
const read = (frames: readonly Uint8Array[]) =>
  Buffer.concat([...frames])
    .toString()
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1] ?? '';
      const { id, host, kind, data } = JSON.parse(field('data'));
      return { vector: field('id'), event: field('event'), id, host, kind, title: data.title };
    });

function filled(): FleetLog {
  const log = new FleetLog();
  log.append('', 'own-1', event('here 1'));
  log.append('build', 'b-1', event('build 1'));
  log.append('lab', 'l-1', event('lab 1'));
  log.append('build', 'b-2', event('build 2'));
  return log;
}

t.test('an event names its host and id, and its frame names the last id of every Hub', async (t) => {
  const last = read(filled().replay('~own-1')).at(-1);
  t.match(last, { id: 'build~b-2', host: 'build', title: 'build 2', vector: '~own-1,build~b-2,lab~l-1' });
  t.equal(read(filled().replay('build~b-1'))[0]?.host, null, 'this machine has no name');
});

t.test('a vector resumes every Hub after its last id', async (t) => {
  const log = filled();
  const titles = (vector: string) => read(log.replay(vector)).map(({ title }) => title);
  t.same(titles('~own-1,build~b-1,lab~l-1'), ['build 2'], 'a vector that was sent');
  t.same(titles('~own-1,build~b-1'), ['lab 1', 'build 2'], 'a vector without one of the hosts');
  t.same(titles('lab~l-1,build~b-1,~own-1'), ['build 2'], 'in any order');
  t.same(titles('~own-1,build~b-2,lab~l-1'), []);
  t.same(read(log.replay(undefined)), [], 'without a vector, no past event is replayed');
});

t.test('evicted events are reported as one gap for each host', async (t) => {
  const log = filled();
  for (let number = 0; number <= defaults.sse.ringEvents; number += 1) log.append('lab', `l-${number + 2}`, event('x'));
  const frames = read(log.replay('~own-1,build~b-1,lab~l-1'));
  const gaps = frames.filter(({ kind }) => kind === 'hub.gap').map(({ host }) => host);
  t.same(gaps, ['build', 'lab'], 'no gap for this machine, whose events were all read');
});

t.test('a hostile id or kind cannot add a field to a frame', async (t) => {
  const log = new FleetLog();
  log.append('build', 'b-1\nid: x', event('never'));
  log.append('build', 'b,~c', event('never'));
  log.append('build', 'b-2', { ...event('shown'), kind: 'a\nretry: 1' });
  const frames = read(log.replay('~none'));
  t.match(
    frames.filter(({ kind }) => kind !== 'hub.gap'),
    [{ id: 'build~b-2', event: 'message' }],
  );
});

t.test('a Last-Event-ID beyond the limit is cut', async (t: Test) => {
  const log = filled();
  const began = performance.now();
  log.replay(`${'build~x,'.repeat(1_000_000)}`);
  t.ok(performance.now() - began < 60_000);
});

t.test('a subscriber receives each event once, in batches, then the end', async (t) => {
  const log = filled();
  const batches: Uint8Array[] = [];
  const ended = new Promise<void>((resolve) => {
    log.subscribe((batch) => batches.push(batch), resolve);
  });
  log.append('build', 'b-3', event('build 3'));
  log.append('lab', 'l-2', event('lab 2'));
  log.end();
  await ended;
  t.same(
    read(batches).map(({ title }) => title),
    ['build 3', 'lab 2'],
  );
});
