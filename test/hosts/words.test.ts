import t from 'tap';
import * as v from 'valibot';
import { hostRefusals } from '../../machines/index.ts';
import {
  addressCommand,
  clean,
  HostFailure,
  nextStep,
  platformIn,
  remoteAddressIn,
  requireVersion,
  sshFailure,
} from '../../src/hosts/index.ts';
import { HostName, RemoteProgram, SshTarget } from '../../src/protocol/index.ts';

const refusalOf = (work: () => unknown): unknown => {
  try {
    work();
    return 'accepted';
  } catch (error) {
    return error instanceof HostFailure ? error.refusal : error;
  }
};

t.test('each message of ssh maps to its refusal', async (t) => {
  const cases = {
    'Host key verification failed.\n': 'hostKey',
    'No ED25519 host key is known for box and you have requested strict checking.\nHost key verification failed.':
      'hostKey',
    '@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nme@box: Permission denied (publickey).': 'hostKey',
    'me@box: Permission denied (publickey,password).': 'authentication',
    'sign_and_send_pubkey: signing failed for ED25519 "key" from agent: agent refused operation\nme@box: Permission denied (publickey).':
      'authentication',
    'Received disconnect: Too many authentication failures': 'authentication',
    'ssh: connect to host box port 22: Connection refused': null,
    'ssh: Could not resolve hostname box: Name or service not known': null,
    'Timeout, server box not responding.': null,
    '': null,
  };
  for (const [stderr, refusal] of Object.entries(cases)) t.equal(sshFailure(stderr).refusal, refusal, stderr);
  t.equal(sshFailure('\u001b[2J\u202ebox gone\n').message, '␛[2J<U+202E>box gone', 'the message is safe to show');
  t.ok(sshFailure('x'.repeat(100_000)).message.length <= 300);
});

t.test('the next step of every refusal names a command', async (t) => {
  for (const refusal of hostRefusals)
    t.match(
      nextStep({ refusal, remoteVersion: null }, { name: 'build', ssh: 'ssh://me@box' }),
      /ssh |oratorio /,
      refusal,
    );
});

t.test('regression: the next step of a host that was not added is to add it', async (t) => {
  const command = 'oratorio hosts add ssh://me@box --name build';
  for (const refusal of hostRefusals) {
    const words = nextStep({ refusal, remoteVersion: null }, { name: 'build', ssh: 'ssh://me@box', command });
    t.match(words, 'oratorio hosts add ssh://me@box --name build', refusal);
    t.notMatch(words, 'hosts enable', refusal);
  }
});

t.test('a remote command that fails is named by its problem, not by its hint', async (t) => {
  const failure = (stderr: string, exitCode: number): unknown => {
    try {
      return remoteAddressIn({ stdout: '{"error":{}}', stderr, exitCode });
    } catch (error) {
      return error;
    }
  };
  const full =
    '✖ The Hub cannot be started: ENOSPC: no space left on device\n  Run `oratorio hub` to see the Hub start.\n';
  t.match(failure(full, 3), { refusal: null, message: 'The Hub cannot be started: ENOSPC: no space left on device' });
  const older = '✖ oratorio hub has no option --json.\n  See: oratorio hub --help\n';
  t.match(failure(older, 2), {
    refusal: 'version',
    message: /does not have the command "hub address"\. oratorio hub has/,
  });
  t.match(failure('', 9), { refusal: null, message: 'The remote command "hub address" failed with 9.' });
});

t.test('the output of hub address is found after the output of a login shell', async (t) => {
  const address = { apiBaseUrl: 'http://127.0.0.1:7717', version: '0.1.0', tokenId: 't', token: 'x'.repeat(40) };
  const end = (stdout: string, exitCode = 0, stderr = '') => ({ stdout, stderr, exitCode });
  t.same(remoteAddressIn(end(`Welcome!\n{"motd":1}\n${JSON.stringify(address)}\n`)), address);
  t.equal(
    refusalOf(() => remoteAddressIn(end('', 127, 'sh: oratorio: not found'))),
    'noProgram',
  );
  t.equal(
    refusalOf(() => remoteAddressIn(end('', 126, 'Permission denied'))),
    'noProgram',
  );
  t.equal(
    refusalOf(() => remoteAddressIn(end('', 255, 'Permission denied (publickey)'))),
    'authentication',
  );
  t.equal(
    refusalOf(() => remoteAddressIn(end('hello'))),
    'version',
  );
  for (const apiBaseUrl of [
    'http://evil.example:80',
    'https://127.0.0.1:1',
    'http://127.0.0.1@evil.example:80',
    'file:///x',
  ])
    t.equal(
      refusalOf(() => remoteAddressIn(end(JSON.stringify({ ...address, apiBaseUrl })))),
      'version',
      apiBaseUrl,
    );
});

t.test('the remote shell expands the home in the path of a program, and nothing else', async (t) => {
  t.equal(addressCommand('~/.local/bin/oratorio'), '"$HOME"/.local/bin/oratorio hub address --json --start');
  t.match(addressCommand('~/a $(id)'), /^"\$HOME"\/'a \$\(id\)' /);
  t.match(addressCommand('/opt/~/x'), /^'\/opt\/~\/x' /);
});

t.test('only known systems and processors name a release', async (t) => {
  t.equal(platformIn('Welcome\nLinux x86_64\n'), 'linux-x64');
  t.equal(platformIn('Darwin arm64'), 'darwin-arm64');
  for (const text of [
    '',
    'Linux',
    'Linux riscv64',
    'FreeBSD amd64',
    '__proto__ constructor',
    'Linux x86_64; id',
    '\u001b[2J',
  ])
    t.equal(platformIn(text), undefined, text);
});

t.test('a remote Hub of the same or an earlier minor version is accepted', async (t) => {
  const judge = (remote: string) => refusalOf(() => requireVersion(remote, '1.4.2'));
  for (const remote of ['1.4.2', '1.4.9', '1.3.0', '1.0.0-rc.1']) t.equal(judge(remote), 'accepted', remote);
  for (const remote of ['1.5.0', '2.0.0', '0.9.0', 'x', '']) t.equal(judge(remote), 'version', remote);
});

t.test('an address, a name or a program that ssh would read as an option or a command is invalid', async (t) => {
  for (const target of ['ssh://box', 'ssh://me@build-box.example:2222', 'ssh://root@[::1]:22'])
    t.ok(v.is(SshTarget, target), target);
  for (const target of [
    'box',
    '-oProxyCommand=x',
    'ssh://-oProxyCommand=x',
    'ssh://-x@box',
    'ssh://box;id',
    'ssh://$(id)',
    'ssh://box/..',
    'ssh://box\n',
    'ssh://box:0',
  ])
    t.notOk(v.is(SshTarget, target), target);
  for (const name of ['a', 'build-2']) t.ok(v.is(HostName, name), name);
  for (const name of ['', 'Build', '../x', 'a~b', 'a/b', '-a', 'x'.repeat(33), '__proto__'])
    t.notOk(v.is(HostName, name), name);
  for (const program of ['oratorio', '/opt/o r/bin/oratorio']) t.ok(v.is(RemoteProgram, program), program);
  for (const program of ['', '-x', 'a b', 'a;b', './x', '/a\nb']) t.notOk(v.is(RemoteProgram, program), program);
});

t.test('texts of a remote Hub are safe to show at any depth', async (t) => {
  const hostile = {
    a: ['\u001b[31mred', { b: 'ws://127.0.0.1:1/ws?token=secret&x=1' }],
    c: 'two\nlines',
    d: 1,
    e: null,
  };
  t.same(clean(hostile), { a: ['␛[31mred', { b: 'ws://127.0.0.1:1/ws?token=…&x=1' }], c: 'two\nlines', d: 1, e: null });
  let deep: unknown = '\u001b';
  for (let depth = 0; depth < 1_000; depth += 1) deep = [deep];
  t.notOk(JSON.stringify(clean(deep)).includes('u001b'));
});
