/** The profile of the sandbox on macOS. Linux tests its text; a Mac also runs it. */
import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { MountPlan, type PathAccess } from '../../../src/agent/tools/exec/mount-plan.ts';
import type { SandboxNetwork } from '../../../src/agent/tools/exec/mounts.ts';
import { sandboxExec, seatbeltProfile } from '../../../src/agent/tools/exec/seatbelt.ts';

const rows: readonly PathAccess[] = [
  { path: '/Users/a', access: 'hidden' },
  { path: '/Users/a/.cargo', access: 'read' },
  { path: '/Users/a/.cargo/credentials.toml', access: 'hidden' },
  { path: '/Users/a/site', access: 'write' },
  { path: '/Users/a/site/.git', access: 'write' },
  { path: '/Users/a/site/.git/config', access: 'read' },
  { path: '/Users/a/site/.git/hooks', access: 'absentDirectory' },
  { path: '/Users/a/site/missing', access: 'absentHidden' },
];

const profileOf = (places: readonly PathAccess[] = rows, network: SandboxNetwork = 'deny') =>
  seatbeltProfile({ network }, { plan: new MountPlan(places), links: new Map() });

t.test('each row of the rule has its line, and a place comes after the one that contains it', async (t) => {
  const lines = profileOf().split('\n');
  const at = (line: string) => {
    const found = lines.indexOf(line);
    t.ok(found > 0, line);
    return found;
  };
  const ordered = [
    '(deny file-write*)',
    '(deny file-read* file-write* (subpath "/Users/a"))',
    '(allow file-read-metadata (subpath "/Users/a"))',
    '(allow file-read* (subpath "/Users/a/.cargo"))',
    '(deny file-read* file-write* (subpath "/Users/a/.cargo/credentials.toml"))',
  ].map(at);
  t.strictSame(
    ordered,
    ordered.toSorted((one, other) => one - other),
  );
  const ofGit = [
    '(allow file-read* file-write* (subpath "/Users/a/site"))',
    '(deny file-read* file-write* (subpath "/Users/a/site/missing"))',
    '(deny file-write* (subpath "/Users/a/site/.git/config"))',
    '(deny file-write* (subpath "/Users/a/site/.git/hooks"))',
  ].map(at);
  t.strictSame(
    ofGit.slice(1).map((line) => line > (ofGit[0] ?? 0)),
    [true, true, true],
  );
});

t.test('the network is closed but for this machine, unix sockets included, or open', async (t) => {
  t.match(profileOf(), /\(deny network\*\)\n\(allow network\* \(local ip "localhost:\*"\)/);
  t.notMatch(profileOf(rows, 'allow'), /network/);
});

t.test('no path ends its own text (property)', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      const places: readonly PathAccess[] = [{ path: `/w/${name}`, access: 'write' }];
      if (/\p{Cc}/u.test(name)) {
        t.throws(() => profileOf(places), RangeError);
        return;
      }
      // Without its texts a profile has only words, stars, blanks and balanced brackets.
      const bare = profileOf(places).replace(/"(?:\\.|[^"\\])*"/g, '""');
      t.match(bare, /^[\w\s()*"-]+$/);
      t.equal(bare.split('(').length, bare.split(')').length);
    }),
    { numRuns: 300 },
  );
});

if (process.platform === 'darwin') {
  t.test('a command writes where the profile allows it, and reads nothing hidden', async (t) => {
    const place = realpathSync(t.testdir({ open: {}, shut: {}, hidden: { text: 'secret' } }));
    const profile = profileOf([
      { path: join(place, 'open'), access: 'write' },
      { path: join(place, 'shut'), access: 'read' },
      { path: join(place, 'hidden'), access: 'hidden' },
    ]);
    const run = (command: string) =>
      spawnSync(sandboxExec, ['-p', profile, '/bin/sh', '-c', command], { cwd: place, encoding: 'utf8' });
    t.match(run('echo hi > open/a && cat open/a'), { status: 0, stdout: 'hi\n' });
    t.not(run('echo hi > shut/a').status, 0);
    t.match(run('cat hidden/text'), { status: 1, stdout: '' });
  });
}
