/** A line between two machines that drops packets: between two networks of the test where it may create them, else an ended sshd. */
import t from 'tap';
import type { FleetEvent, HostRecord } from '../../src/protocol/index.ts';
import { eventually, readHubLock } from '../hub/harness.ts';
import { oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t, { apart: true });
const { here, there, program } = machines;
const line = machines.isApart ? 'a line that drops packets' : 'an ended sshd';
const added = await oratorio(here, ['hosts', 'add', 'ssh://box', '--name', 'build', '--program', program, '--json']);
t.equal(added.code, 0, 'the host is connected');

const hostOf = async (): Promise<HostRecord> => (await oratorioJson(here, 'hosts'))[0];
const seen: string[] = [];
const gaps: string[] = [];
const leaving = new AbortController();
t.teardown(() => leaving.abort());
/** Publishes events on the second machine, which continues without the line. */
function post(titles: readonly string[]): void {
  const { apiBaseUrl, token } = readHubLock(there.home) ?? {};
  machines.runThere(
    `(async () => { for (const title of ${JSON.stringify(titles)}) {
      const response = await fetch(${JSON.stringify(`${apiBaseUrl}/v1/notifications/request`)}, {
        method: 'POST', body: JSON.stringify({ title }),
        headers: { authorization: ${JSON.stringify(`Bearer ${token}`)}, 'content-type': 'application/json' } });
      if (!response.ok) throw new Error(await response.text());
    } })()`,
  );
}

const sent: string[] = [];
function postMore(name: string): void {
  const titles = Array.from({ length: 10 }, (_, number) => `${name} ${number}`);
  post(titles);
  sent.push(...titles);
}
const allSeen = () => eventually(() => seen.length >= sent.length || undefined, 'every event has arrived');

t.test('the events of the host are followed', async (t) => {
  await new Promise<void>((onOpen) => {
    void (async () => {
      const events = runningHub(here).client.events({ allHosts: true, signal: leaving.signal, onOpen });
      for await (const event of events) {
        const { kind, data } = event as unknown as FleetEvent;
        if (kind === 'notification.requested') seen.push(String(data['title']));
        if (kind === 'hub.gap') gaps.push(kind);
      }
    })().catch((error: unknown) => leaving.signal.aborted || t.fail(String(error)));
  });
  t.match(await hostOf(), { state: 'connected' });
});

t.test(`${line}: a cut of 5 s loses and repeats no event`, async (t) => {
  await machines.cutLine();
  postMore('short');
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  await machines.mendLine();
  await allSeen();
  t.same(seen, sent);
  t.match(await hostOf(), { state: 'connected' });
});

t.test(`${line}: a cut of 40 s is noticed while it lasts, and loses and repeats no event`, async (t) => {
  const begun = performance.now();
  await machines.cutLine();
  postMore('long');
  // Between two attempts to connect it is unreachable for a moment only.
  const cut = await eventually(async () => {
    const host = await hostOf();
    return host.state === 'connected' ? undefined : host;
  }, 'the cut is noticed');
  t.match(cut, { reason: /.+/, asOf: /^\d{4}-/ });
  t.ok(readHubLock(there.home), 'the remote Hub runs');
  await new Promise((resolve) => setTimeout(resolve, 40_000 - (performance.now() - begun)));
  await machines.mendLine();
  await oratorioJson(here, 'hosts', 'enable', 'build');
  await allSeen();
  t.same(seen, sent);
  t.same(gaps, []);
});
