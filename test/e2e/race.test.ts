/** `oratorio race` in the product as it is installed, with a model whose second attempt is the good one. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { answered, startMockUpstream, type UpstreamRequest } from '../fixtures/upstream/mock-upstream.ts';
import { makePlace, oratorio } from './harness.ts';

t.test('the attempt that passes the check is applied, and undo takes it back', async (t) => {
  let attempts = 0;
  const model = (request: UpstreamRequest) => {
    const messages: { role: string }[] = request.body.messages;
    if (messages.at(-1)?.role === 'tool') return answered(request, { text: 'done' });
    attempts += 1;
    const content = attempts === 2 ? 'good' : 'bad';
    return answered(request, {
      toolCalls: [{ id: 'call_1', name: 'WriteFile', arguments: { path: 'a.txt', content } }],
    });
  };
  const upstream = await startMockUpstream(t, model);
  const place = makePlace(t);
  const workspace = place.workspace('site', { EndPoint: upstream.url, ApiKey: 'key', Model: 'm', UpstreamRetries: 0 });
  const a = join(workspace, 'a.txt');
  writeFileSync(a, 'before');
  const at = ['--workspace', workspace];
  const check = ['--check', 'grep -q good a.txt', '--attempts', '3', '--yes', '--json'];
  const race = await oratorio(place, ['race', ...at, ...check, 'Make it good.']);
  t.equal(race.code, 0, race.stderr);
  const { threadId, attempts: found, applied } = JSON.parse(race.stdout);
  t.equal(found.length, 3);
  t.equal(found.filter(({ hasPassed }: { hasPassed: boolean }) => hasPassed).length, 1);
  t.same([applied.restored, readFileSync(a, 'utf8')], [['a.txt'], 'good']);
  for (const { directory } of found) t.ok(existsSync(directory), 'the attempts are kept');

  interface Listed {
    readonly directory: string;
    readonly race: { readonly restoreId?: string };
  }
  const listed = async (): Promise<Listed[]> => {
    const [record] = JSON.parse((await oratorio(place, ['list', '--json'])).stdout);
    return record.forks;
  };
  const forks = await listed();
  const directories = (of: readonly Pick<Listed, 'directory'>[]) => of.map(({ directory }) => directory).sort();
  t.same(directories(forks), directories(found), 'attempts are below their workspace');
  const appliedBy = (listed: readonly Listed[]) => listed.flatMap(({ race }) => race.restoreId ?? []);
  t.same(appliedBy(forks), [applied.restoreId], 'the applied attempt is known');
  t.match((await oratorio(place, ['list'])).stdout, /└ attempt 2\t(?:check: (?:passed|failed|stopped))\t/);
  t.match(
    (await oratorio(place, ['up', workspace, '--no-follow'])).stdout,
    /└ race: attempt 2, Make it good\. {2}check: /,
  );

  const undo = await oratorio(place, ['undo', ...at, '--json']);
  t.equal(undo.code, 0, undo.stderr);
  t.equal(readFileSync(a, 'utf8'), 'before');
  const again = await oratorio(place, ['undo', ...at]);
  t.match(
    [again.code, again.stderr],
    [1, /no turn that could be taken back/],
    'what is taken back is not brought back',
  );
  const { restoreId } = JSON.parse(undo.stdout);
  const redo = await oratorio(place, ['undo', ...at, '--thread', threadId, '--restore', restoreId, '--json']);
  t.equal(readFileSync(a, 'utf8'), 'good', redo.stderr);
  const { restoreId: redone } = JSON.parse(redo.stdout);
  t.equal((await oratorio(place, ['undo', ...at, '--thread', threadId, '--restore', redone])).code, 0);
  t.equal(readFileSync(a, 'utf8'), 'before');
  t.same(appliedBy(await listed()), []);
  t.match((await oratorio(place, ['race', ...at, '--prune'])).stdout, 'Deleted 3 attempts.');
  for (const { directory } of found) t.notOk(existsSync(directory));
  await oratorio(place, ['hub', 'stop']);
});
