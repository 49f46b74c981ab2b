/** Hosts of a Hub without a remote machine: a missing `ssh`, and changes at the same time with an `ssh` that never connects. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { eventually, startTestHub, temporaryDirectory } from '../hub/harness.ts';

t.test('a machine without ssh names the missing program, and its Hub serves', async (t) => {
  const bin = temporaryDirectory(t);
  const hub = await startTestHub(t, { env: { PATH: bin } });
  t.equal((await hub.call('POST', '/v1/hosts', { name: 'build', ssh: 'ssh://box' })).status, 200);
  const host = await eventually(async () => {
    const [found] = (await hub.call('GET', '/v1/hosts')).body;
    return found.state === 'unreachable' ? found : undefined;
  }, 'the host is unreachable');
  t.match(host, { phase: 'unreachable.waiting', reason: 'This machine has no program ssh: install OpenSSH.' });
  t.match((await hub.call('GET', '/v1/fleet/appservers')).body, { hosts: [{ state: 'unreachable' }], appServers: [] });
});

t.test('regression: changes of one host at the same time leave one ssh, and settings that fit', async (t) => {
  const bin = temporaryDirectory(t);
  writeFileSync(join(bin, 'ssh'), '#!/bin/sh\nwhile :; do sleep 1; done\n', { mode: 0o755 });
  const hub = await startTestHub(t, { env: { PATH: `${bin}:${process.env['PATH']}` } });
  const lines = () =>
    execFileSync('ps', ['-A', '-ww', '-o', 'args='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(join(bin, 'ssh')));
  const add = (box: string) => hub.call('POST', '/v1/hosts', { name: 'build', ssh: `ssh://${box}` });
  const act = (action: string) => hub.call('POST', `/v1/hosts/build/${action}`, {});
  const settings = () => JSON.parse(readFileSync(join(hub.home, 'config.json'), 'utf8')).Hosts ?? {};

  const added = await Promise.all(['one', 'two', 'three', 'four'].map(add));
  t.same(
    added.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  await eventually(
    () => lines().length === 1 || undefined,
    () => `one ssh runs: ${lines().join('\n')}`,
  );
  const { body: hosts } = await hub.call('GET', '/v1/hosts');
  t.match(hosts, [{ name: 'build', ssh: settings().build.Ssh }]);
  t.equal(hosts.length, 1);

  const answers = await Promise.all([add('five'), act('remove'), act('enable'), act('disable'), act('remove')]);
  for (const { status, body } of answers)
    t.ok(status === 200 || body.error.code === 'hostUnknown', JSON.stringify(body));
  t.same(settings(), {}, 'a change after the removal writes nothing');
  t.same((await hub.call('GET', '/v1/hosts')).body, []);
  await eventually(() => lines().length === 0 || undefined, 'no ssh is left');

  const odd = await hub.call('POST', '/v1/hosts', { name: 'constructor', ssh: 'ssh://box' });
  t.match(odd, { status: 200, body: { name: 'constructor' } });
  t.same(settings(), { constructor: { Ssh: 'ssh://box' } });
  t.equal((await hub.call('POST', '/v1/hosts/constructor/remove', {})).status, 200);
  for (const name of ['__proto__', '../x', 'a~b', 'a\nb', '-x'])
    t.equal((await hub.call('POST', '/v1/hosts', { name, ssh: 'ssh://box' })).status, 400, name);

  await Promise.all([add('six'), add('seven'), hub.shutdown()].map((each) => each.catch(() => undefined)));
  await eventually(() => lines().length === 0 || undefined, 'the end of the Hub leaves no ssh');
});
