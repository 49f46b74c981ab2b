import { linkSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import {
  createPathFilter,
  displayPath,
  isWithin,
  PathError,
  resolveInWorkspace,
} from '../../../src/agent/tools/paths.ts';
import { places, settings } from './file-tools.ts';

const onPosix = { skip: process.platform === 'win32' && 'symlinks and their like are those of POSIX' };

t.test('a path leads where its symlinks lead', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'src/a.ts': '' });
  writeFileSync(join(outside, 'secret'), '');
  symlinkSync('src', at('inner'));
  symlinkSync(outside, at('link'));
  symlinkSync(join(outside, 'secret'), at('file'));
  symlinkSync('link', at('chain'));
  const look = (given: string) => resolveInWorkspace(workspace, given, settings());
  for (const [given, path, isInside] of [
    ['src/a.ts', at('src/a.ts'), true],
    ['./src/../src/a.ts', at('src/a.ts'), true],
    [at('src/a.ts'), at('src/a.ts'), true],
    ['.', workspace, true],
    ['inner/a.ts', at('src/a.ts'), true],
    ['new/deep/file', at('new/deep/file'), true],
    ['src/a.ts/child', at('src/a.ts/child'), true],
    ['link/secret', join(outside, 'secret'), false],
    ['link/new/file', join(outside, 'new/file'), false],
    ['chain/secret', join(outside, 'secret'), false],
    ['file', join(outside, 'secret'), false],
    ['..', join(workspace, '..'), false],
    ['../ws-evil/x', `${workspace}-evil/x`, false],
    ['../../../../../../../../etc/passwd', '/etc/passwd', false],
    ['/etc/passwd', realpathSync('/etc/passwd'), false],
    ['~/x', join(realpathSync(homedir()), 'x'), false],
    ['~', realpathSync(homedir()), false],
    ['~x', at('~x'), true],
    ['inner/..', workspace, true],
  ] as const) {
    t.match(await look(given), { path, isInside, isBlocked: false }, given);
  }
});

t.test('a symlink that leads nowhere yet leads there all the same', onPosix, async (t) => {
  const { workspace, outside, at } = places(t);
  symlinkSync(join(outside, 'not-yet'), at('dangling'));
  symlinkSync('../outside/other/deep', at('relative'));
  symlinkSync('dangling', at('twice'));
  symlinkSync('loop-b', at('loop-a'));
  symlinkSync('loop-a', at('loop-b'));
  const look = (given: string) => resolveInWorkspace(workspace, given, settings());
  t.match(await look('dangling'), { path: join(outside, 'not-yet'), isInside: false });
  t.match(await look('dangling/x'), { path: join(outside, 'not-yet/x'), isInside: false });
  t.match(await look('relative'), { path: join(outside, 'other/deep'), isInside: false });
  t.match(await look('twice'), { path: join(outside, 'not-yet'), isInside: false });
  await t.rejects(look('loop-a'), PathError);
});

t.test('an invalid path is refused with an error of one sentence', async (t) => {
  const { workspace } = places(t);
  for (const [given, message] of [
    ['', /empty/],
    ['  ', /empty/],
    ['a\0b', /NUL/],
    ['x'.repeat(5_000), /longer than 4096/],
    ['x'.repeat(300), /too long/],
    ['file:///etc/passwd', /plain path/],
    ['FILE:/etc/passwd', /plain path/],
    ['\\\\server\\share', /Network/],
    ['\\\\?\\C:\\x', /Network/],
  ] as const) {
    const failure = await resolveInWorkspace(workspace, given, settings()).catch((error: unknown) => error);
    t.ok(failure instanceof PathError, given.slice(0, 20));
    t.match((failure as Error).message, message);
  }
});

t.test('files of Oratorio are blocked under every name', onPosix, async (t) => {
  const { workspace, outside, at, put } = places(t);
  put('nested/.oratorio/appserver.lock', '');
  symlinkSync('.oratorio', at('plain-name'));
  symlinkSync(outside, at('home'));
  const rules = settings({ protectedDirectories: [outside] });
  for (const given of [
    '.oratorio',
    '.oratorio/state.db',
    '.oratorio/new/file',
    '.ORATORIO/config.json',
    'plain-name/config.json',
    'nested/.oratorio/appserver.lock',
    '~/.oratorio/config.json',
    'home',
    'home/hub/hub.lock',
    join(outside, 'hub/hub.lock'),
    './src/../.oratorio/x',
  ]) {
    t.match(await resolveInWorkspace(workspace, given, rules), { isBlocked: true, blockedBecause: /Oratorio/ }, given);
  }
  for (const given of ['.oratorio.md', 'oratorio/x', `${outside}-else`]) {
    t.match(await resolveInWorkspace(workspace, given, rules), { isBlocked: false }, given);
  }
});

t.test("Oratorio's home may hold a workspace", async (t) => {
  const { base, workspace } = places(t);
  const rules = settings({ protectedDirectories: [base] });
  t.match(await resolveInWorkspace(workspace, 'src/a.ts', rules), { isInside: true, isBlocked: false });
  t.match(await resolveInWorkspace(workspace, '../hub', rules), { isInside: false, isBlocked: true });
  t.match(await resolveInWorkspace(workspace, '.oratorio/x', rules), { isBlocked: true });
});

t.test(
  'Permissions.BlockedPaths: files and directories, relative, absolute, through links, by another hard link',
  onPosix,
  async (t) => {
    const { workspace, outside, at } = places(t, { '.env': 'KEY=1', 'keys/a': '', 'open/b': '' });
    symlinkSync(outside, at('out'));
    linkSync(at('.env'), at('same-file'));
    const rules = settings({ blockedPaths: ['.env', './keys/', 'out', join(outside, 'deep'), '~/.ssh', 'later'] });
    for (const given of [
      '.env',
      'keys',
      'keys/a',
      'keys/new',
      'out',
      join(outside, 'x'),
      '~/.ssh/id',
      'same-file',
      'later/x',
    ]) {
      t.match(
        await resolveInWorkspace(workspace, given, rules),
        { isBlocked: true, blockedBecause: /BlockedPaths/ },
        given,
      );
    }
    for (const given of ['open/b', '.env.example', 'keys2', 'sub/.env']) {
      t.match(await resolveInWorkspace(workspace, given, rules), { isBlocked: false }, given);
    }
    t.match(await resolveInWorkspace(workspace, 'open/b', settings({ blockedPaths: ['.'] })), { isBlocked: true });
  },
);

t.test('files of the kernel are blocked', { skip: process.platform !== 'linux' && 'only Linux has it' }, async (t) => {
  const { workspace, at } = places(t);
  symlinkSync('/proc/self', at('me'));
  for (const given of ['/proc/self/environ', '/dev/sda', '/sys/kernel', 'me/environ', '/proc/self/task/../mem']) {
    t.match(
      await resolveInWorkspace(workspace, given, settings()),
      { isBlocked: true, blockedBecause: /kernel/ },
      given,
    );
  }
  const through = await resolveInWorkspace(workspace, '/proc/self/root/etc/passwd', settings());
  t.equal(through.isInside, false);
  t.equal(through.isBlocked, true, 'its name goes through /proc');
  symlinkSync('/proc/self/cwd', at('cwd'));
  t.match(await resolveInWorkspace(workspace, 'cwd/x', settings()), {
    path: join(process.cwd(), 'x'),
    isInside: false,
  });
});

t.test('a search shows only files that are reached without symlinks and are not blocked', onPosix, async (t) => {
  const { workspace, outside, at } = places(t, { 'a/b': '', '.env': '' });
  writeFileSync(join(outside, 'x'), '');
  symlinkSync(outside, at('link'));
  const isVisible = await createPathFilter(workspace, settings({ blockedPaths: ['.env'] }));
  t.equal(await isVisible(at('a/b')), true);
  t.equal(await isVisible(at('link/x')), false);
  t.equal(await isVisible(at('.env')), false);
  t.equal(await isVisible(at('.oratorio/config.json')), false);
  t.equal(await isVisible(at('gone')), false);
});

t.test('inside means a directory above, not a name that begins alike', async (t) => {
  t.equal(isWithin('/a/ws', '/a/ws'), true);
  t.equal(isWithin('/a/ws', '/a/ws/x'), true);
  t.equal(isWithin('/a/ws', '/a/ws-evil'), false);
  t.equal(isWithin('/a/ws', '/a'), false);
  t.equal(isWithin('/', '/x'), true);
  t.equal(displayPath('/a/ws', '/a/ws/x/y'), 'x/y');
  t.equal(displayPath('/a/ws', '/a/ws'), '.');
  t.equal(displayPath('/a/ws', '/a/other'), '/a/other');
});

t.test(
  'with any spelling, a path judged inside is inside the workspace and not a file of Oratorio',
  onPosix,
  async (t) => {
    const { workspace, outside, at } = places(t, { 'd/e/f': '' });
    mkdirSync(join(outside, 'o'));
    symlinkSync(outside, at('out'));
    symlinkSync('../..', at('d/up'));
    symlinkSync('.oratorio', at('d/../own'));
    symlinkSync('d/e', at('in'));
    symlinkSync(join(outside, 'missing'), at('dangling'));
    const part = fc.constantFrom(
      '.',
      '..',
      '',
      'd',
      'e',
      'f',
      'out',
      'o',
      'up',
      'in',
      'own',
      '.oratorio',
      'dangling',
      'new',
      'ws',
      'outside',
      '~',
      ' ',
    );
    const start = fc.constantFrom(
      '',
      '/',
      './',
      '../',
      `${workspace}/`,
      `${outside}/`,
      '~/',
      '/proc/self/cwd/',
      '/proc/self/root/',
    );
    await fc.assert(
      fc.asyncProperty(start, fc.array(part, { maxLength: 8 }), async (first, parts) => {
        const given = first + parts.join('/');
        const resolved = await resolveInWorkspace(workspace, given, settings()).catch((error: unknown) => error);
        if (resolved instanceof PathError) return true;
        if (resolved instanceof Error) throw resolved;
        const { path, isInside, isBlocked } = resolved as Awaited<ReturnType<typeof resolveInWorkspace>>;
        // The kernel's own opinion: the longest part that exists is reached without any symlink.
        let existing = path;
        while (existing !== '/' && realpathOrNothing(existing) === undefined) existing = join(existing, '..');
        const isReal = realpathOrNothing(existing) === existing;
        const isOwn = path === at('.oratorio') || path.startsWith(at('.oratorio/'));
        return isReal && isInside === (path === workspace || path.startsWith(`${workspace}/`)) && (!isOwn || isBlocked);
      }),
      { numRuns: 500 },
    );
  },
);

function realpathOrNothing(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
