/** kill -9 of the agent server while turns wait for a quota, each refused in another form. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { forms, hour, minute } from '../agent/runtime/quota-forms.ts';
import { killIfThere } from '../hub/harness.ts';
import { program } from '../programs.ts';
import { eventually, type Message, readLock, serving, spawnServer } from './harness.ts';
import { KilledWorkspace, type Prepared } from './killed-turns.ts';

const preloaded = fileURLToPath(new URL('day-later.mjs', import.meta.url));
/** Forms of providers; an external agent ends with its server. */
const names = Object.entries(forms).flatMap(([name, { response }]) => (response ? [name] : []));

t.test(
  'the waits of all forms continue after kill -9, each until its time, and each once after its reset',
  async (t) => {
    /** Hours by which the clock of the next process is ahead. */
    let hours = 0;
    const place = new KilledWorkspace(
      t,
      (t, { path, home }) => {
        const victim = ['--import', preloaded, program('test/appserver/turn-victim.ts'), '--workspace', path];
        const server = spawnServer(t, { path, home, program: victim, env: { ORATORIO_TEST_HOURS: String(hours) } });
        return { ...server, address: async () => (await serving(server, path)).endpoints.appServerWebSocket };
      },
      { Quota: { Wait: 'auto', MaxWaitHours: 48 } },
    );
    const kill = async () => {
      killIfThere(readLock(place.path)?.pid ?? 0);
      await place.restart();
      await place.connect();
    };
    const waiting = () =>
      eventually(async () => {
        const { data } = await place.client.call('approval/list', {});
        return data.length === names.length ? (data as Message[]) : undefined;
      }, 'every turn waits');
    const waitsOf = (requests: readonly Message[]) =>
      requests.map(({ threadId, requestId, until }) => JSON.stringify([threadId, requestId, until])).toSorted();
    const asked = (turn: Prepared) => place.requests.filter(({ id }) => id === turn.name).length;

    await place.connect();
    const reset = Math.ceil(Date.now() / minute) * minute + 2 * hour;
    const turns: Prepared[] = [];
    for (const name of names) {
      const turn = await place.prepare('refused');
      writeFileSync(join(place.home, `reset-${turn.name}`), JSON.stringify({ name, reset }));
      place.begin(turn);
      turns.push(turn);
    }
    const before = await waiting();
    const requests = turns.map(asked);
    for (const { until } of before) t.ok(Date.parse(until) > Date.now(), until);
    await kill();
    t.same(waitsOf(await waiting()), waitsOf(before), 'the same requests, with the same times');
    for (const turn of turns) {
      const [continued] = await eventually(async () => {
        const found = await place.turnsOf(turn.threadId);
        return found[0]?.status === 'waitingQuota' ? found : undefined;
      }, 'the turn waits again');
      t.equal(continued?.resumes, 1);
    }
    t.same(turns.map(asked), requests, 'no request before the reset');

    // Past the latest time, and within the hours in which a turn continues after the earliest: Gemini's day may end in a minute.
    const latest = Math.max(...before.map(({ until }) => Date.parse(until)));
    hours = Math.ceil((latest - Date.now()) / hour) + 1;
    await kill();
    for (const [index, turn] of turns.entries()) {
      const [ended] = await place.ended(turn);
      const name = names[index] ?? '';
      t.match(ended, { status: 'completed', resumes: 2 }, name);
      t.equal(asked(turn), (requests[index] ?? 0) + 1, `${name}: one more request`);
      const kinds = ended?.items.flatMap(({ type, kind }: Message) => (type === 'systemNotice' ? [kind] : []));
      t.same(
        kinds.filter((kind: string) => kind.startsWith('quota')),
        ['quotaWaiting', 'quotaResumed'],
        name,
      );
    }
    t.same(place.bugs, []);
  },
);
