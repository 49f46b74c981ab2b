/** A damaged list of workspaces, an emptied history and files with other data: every face reports the file, the copy and the next step. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import type { Finding } from '../../src/cli/doctor/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { makePlace, oratorio, type Place, runningHub } from './harness.ts';

async function findings(place: Place): Promise<readonly Finding[]> {
  const { stdout } = await oratorio(place, ['doctor', '--offline', '--json']);
  const document: { readonly checks: readonly Finding[] } = JSON.parse(stdout);
  return document.checks.filter(({ id }) => id === 'home.list' || id === 'history');
}

t.test('a cut list of workspaces and an emptied history are reported until their copies are deleted', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('notes', { Provider: 'demo' });
  const listFile = join(place.home, 'hub', 'appservers.json');
  const state = workspaceStateDirectory(place.home, workspace);
  const database = join(state, 'state.db');
  const copyOf = (file: string) => {
    const directory = file === database ? state : join(place.home, 'hub');
    const name = readdirSync(directory).find((each) => each.startsWith(`${basename(file)}.damaged-`));
    return name === undefined ? 'no copy' : join(directory, name);
  };
  const start = async () => {
    const { code, stderr } = await oratorio(place, ['up', workspace, '--no-follow']);
    t.equal(code, 0, stderr);
    return runningHub(place);
  };
  const stop = () => oratorio(place, ['hub', 'stop']);
  /** Texts of `list` and the findings of `doctor`. */
  const seen = async () => {
    const [{ stdout, stderr }, found] = await Promise.all([oratorio(place, ['list']), findings(place)]);
    return { stdout, stderr, found };
  };

  const first = await start();
  const whole = await seen();
  t.notMatch(`${whole.stdout}${whole.stderr}`, /damaged/, 'positive control: a whole list is not reported');
  t.same(whole.found, [], 'positive control: a whole history is not reported');
  t.notOk('problems' in (await statusOf(first.lock.apiBaseUrl)), 'the field is absent without a problem');

  await stop();
  const cut = readFileSync(listFile, 'utf8').slice(0, -20);
  writeFileSync(listFile, cut);
  truncateSync(database);
  const viewer = await oratorio(place, ['dashboard', '--workspace', workspace, '--port', '0']);
  t.not(viewer.code, 0);
  t.ok(viewer.stderr.includes(`${database} is empty: its history is lost`), viewer.stderr);

  const { lock, client } = await start();
  const [listCopy, databaseCopy] = [copyOf(listFile), copyOf(database)];
  t.equal(readFileSync(listCopy, 'utf8'), cut, 'the cut list is saved');
  const lost = await seen();
  for (const text of [listFile, listCopy, `rm ${listFile}.damaged-*`]) t.ok(lost.stderr.includes(text), lost.stderr);
  for (const text of [database, databaseCopy, `rm ${database}.damaged-*`])
    t.ok(lost.stdout.includes(text), lost.stdout);
  t.match(lost.found, [
    { id: 'home.list', status: 'warn', workspace: null, where: listFile, next: `rm ${listFile}.damaged-*` },
    { id: 'history', status: 'warn', workspace, where: database, next: `rm ${database}.damaged-*` },
  ]);
  t.match(await statusOf(lock.apiBaseUrl), { problems: [{ code: 'listDamaged' }] }, 'the page of the Hub reads this');
  t.match(await client.byWorkspace(workspace), { problems: [{ code: 'historyLost', what: databaseCopy }] });

  for (const { next } of lost.found) execFileSync('sh', ['-c', next ?? 'false']);
  const after = await seen();
  t.notMatch(`${after.stdout}${after.stderr}`, /damaged/, 'the next step ends the report');
  t.same(after.found, []);
});

t.test(
  'a database and a lock of the Hub that hold other data are named with the next step, and stay unchanged',
  async (t) => {
    const place = makePlace(t);
    const workspace = place.workspace('notes', { Provider: 'demo' });
    const up = () => oratorio(place, ['up', workspace, '--no-follow']);
    const whole = await up();
    t.equal(whole.code, 0, whole.stderr);
    await oratorio(place, ['hub', 'stop']);

    const database = join(workspaceStateDirectory(place.home, workspace), 'state.db');
    const diary = 'diary '.repeat(500);
    writeFileSync(database, diary);
    for (const args of [
      ['up', workspace, '--no-follow'],
      ['exec', '--workspace', workspace, 'hello'],
    ]) {
      const { code, stderr } = await oratorio(place, args);
      t.equal(code, 6);
      t.ok(stderr.includes(`${database} is damaged or is not a database`), stderr);
      t.match(stderr, /move it aside .*: the next start makes a new one/);
    }
    await oratorio(place, ['hub', 'stop']);
    t.equal(readFileSync(database, 'utf8'), diary);
    renameSync(database, `${database}.aside`);

    const lock = join(place.home, 'hub', 'hub.mutex');
    writeFileSync(lock, diary);
    const refused = await up();
    t.equal(refused.code, 3);
    t.ok(refused.stderr.includes(`Cannot use the lock file ${lock}: it is not empty`), refused.stderr);
    t.match(refused.stderr, /Move it aside: the next start makes a new one/);
    t.notMatch(refused.stderr, /The Hub serves/, 'no words of earlier Hubs');
    t.equal(readFileSync(lock, 'utf8'), diary);
    renameSync(lock, `${lock}.aside`);
    const repaired = await up();
    t.equal(repaired.code, 0, `both next steps help: ${repaired.stderr}`);
  },
);

async function statusOf(apiBaseUrl: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${apiBaseUrl}/v1/status`);
  return (await response.json()) as Record<string, unknown>;
}
