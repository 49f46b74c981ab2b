import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';

/** Repository whose configuration names a program of its own in each place where git looks for one. */
export interface HostileRepository {
  readonly path: string;
  /** Environment of the user; its `PATH` finds helpers of the attacker, too. */
  readonly env: Record<string, string>;
  /** Runs git with no protection. @returns false: git failed */
  readonly plainly: (...args: readonly string[]) => boolean;
  /** Names of the programs that ran since the last call. */
  readonly ran: () => readonly string[];
}

/** Keys of which git runs the value as a program. */
const programKeys = [
  'core.fsmonitor core.sshCommand core.askPass core.pager core.editor core.alternateRefsCommand',
  'sequence.editor diff.external credential.helper credential.https://localhost.helper',
  'gpg.program gpg.openpgp.program gpg.x509.program gpg.ssh.program gpg.ssh.defaultKeyCommand',
  'filter.single.clean filter.single.smudge filter.long.process filter.odd=name.x.clean filter.odd=name.x.smudge',
  'diff.own.textconv diff.own.command merge.own.driver mergetool.own.cmd difftool.own.cmd trailer.own.command',
  'alias.status alias.add alias.config alias.worktree interactive.diffFilter uploadpack.packObjectsHook',
  'remote.origin.uploadpack remote.origin.receivepack submodule.sub.update pager.diff pager.status pager.config',
  'tar.own.command web.browser sendemail.sendmailCmd guitool.own.cmd lfs.customtransfer.own.path',
]
  .join(' ')
  .split(' ');
const hooks = [
  'post-checkout',
  'post-index-change',
  'reference-transaction',
  'pre-commit',
  'post-commit',
  'fsmonitor-watchman',
];
const switches = [
  'commit.gpgSign',
  'log.showSignature',
  'merge.verifySignatures',
  'submodule.recurse',
  'diff.autoRefreshIndex',
];

export function hostileRepository(t: Test): HostileRepository {
  const base = realpathSync(t.testdir({ ws: {}, sub: {}, bin: {}, hooks: {}, proofs: {} }));
  const [path, sub, proofs] = [join(base, 'ws'), join(base, 'sub'), join(base, 'proofs')];
  const env = { PATH: `${join(base, 'bin')}:${process.env['PATH']}`, HOME: base };
  const plain = (cwd: string, args: readonly string[]): boolean => {
    try {
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        cwd,
        env,
        stdio: 'ignore',
        timeout: 60_000,
      });
      return true;
    } catch {
      return false;
    }
  };
  const program = (directory: string, name: string): string => {
    const file = join(directory, name.replaceAll('/', '_'));
    writeFileSync(file, `#!/bin/sh\n: > '${proofs}'/"\${0##*/}"\ncat\n`, { mode: 0o755 });
    return file;
  };
  const own = (key: string): string => program(join(base, 'bin'), key);

  for (const [directory, name] of [
    [sub, 'x.sub'],
    [path, 'a.txt'],
  ] as const) {
    plain(directory, ['init', '-q', '-b', 'main']);
    writeFileSync(join(directory, name), 'text\n');
    plain(directory, ['add', '-A']);
    plain(directory, ['commit', '-qm', 'first']);
  }
  plain(path, ['-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', sub, 'sub']);
  plain(path, ['config', '-f', '.gitmodules', 'submodule.sub.ignore', 'none']);
  const attributes = [
    '*.single filter=single',
    '*.long filter=long',
    '*.odd filter=odd=name.x',
    '*.inc filter=included',
  ];
  writeFileSync(
    join(path, '.gitattributes'),
    [...attributes, '*.wt filter=linked', '*.txt diff=own merge=own', ''].join('\n'),
  );
  for (const name of ['single', 'long', 'odd', 'inc', 'wt']) writeFileSync(join(path, `f.${name}`), `${name}\n`);
  plain(path, ['add', '-A']);
  plain(path, ['commit', '-qm', 'second']);
  plain(path, ['branch', 'other']);
  // From here on the repository is hostile.
  for (const hook of hooks) program(join(base, 'hooks'), hook);
  configure(path, {
    ...Object.fromEntries(programKeys.map((key) => [key, own(key)])),
    ...Object.fromEntries(switches.map((key) => [key, 'true'])),
    'core.hooksPath': join(base, 'hooks'),
    'include.path': '../extra.ini',
    'includeIf.gitdir:**/worktrees/**.path': join(path, 'linked.ini'),
  });
  writeFileSync(join(path, 'extra.ini'), `[filter "included"]\n\tclean = ${own('filter.included.clean')}\n`);
  writeFileSync(join(path, 'linked.ini'), `[filter "linked"]\n\tsmudge = ${own('filter.linked.smudge')}\n`);
  writeFileSync(join(path, 'sub', '.gitattributes'), '*.sub filter=inner\n');
  plain(join(path, 'sub'), ['config', 'filter.inner.clean', own('filter.inner.clean')]);
  plain(join(path, 'sub'), ['config', 'core.fsmonitor', own('submodule.core.fsmonitor')]);
  const ran = (): readonly string[] => {
    const names = existsSync(proofs) ? readdirSync(proofs).sort() : [];
    rmSync(proofs, { recursive: true, force: true });
    mkdirSync(proofs);
    return names;
  };
  ran();
  return { path, env, plainly: (...args) => plain(path, args), ran };
}

/** Appends settings to the configuration of a repository, as its file has them. */
export function configure(path: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).flatMap(([key, value]) => {
    const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')];
    const section = key.slice(0, first);
    const head = first === last ? `[${section}]` : `[${section} "${key.slice(first + 1, last)}"]`;
    return [head, `\t${key.slice(last + 1)} = ${value}`];
  });
  appendFileSync(join(path, '.git', 'config'), `${lines.join('\n')}\n`);
}

/** Makes each file younger than the index, so that git reads it through its filters. Sizes stay. */
export function touchFiles(path: string): void {
  for (const name of readdirSync(path))
    if (name.startsWith('f.')) writeFileSync(join(path, name), `${name.slice(2)}\n`);
  writeFileSync(join(path, 'sub', 'x.sub'), 'tex2\n');
}

/** Ways in which a repository reaches for a missing object: settings, and the program that would run. */
export const fetchers = (
  program: (name: string) => string,
): Readonly<Record<string, Readonly<Record<string, string>>>> => ({
  'an ext address': { 'remote.origin.url': `ext::${program('ext')}`, 'protocol.ext.allow': 'always' },
  'a helper by its scheme': { 'remote.origin.url': 'evil::x', 'protocol.allow': 'always' },
  'a helper by its setting': { 'remote.origin.url': 'x', 'remote.origin.vcs': 'evil', 'protocol.evil.allow': 'always' },
  'a program of a local remote': { 'remote.origin.url': 'file:///', 'remote.origin.uploadpack': program('uploadpack') },
  'a program for ssh': { 'remote.origin.url': 'ssh://localhost/x', 'core.sshCommand': program('ssh') },
  'a program for git addresses': { 'remote.origin.url': 'git://localhost/x', 'core.gitProxy': program('proxy') },
  'a rewritten address': {
    'remote.origin.url': 'https://localhost/x',
    [`url.ext::${program('rewritten')}.insteadOf`]: 'https://localhost/x',
    'protocol.ext.allow': 'always',
  },
});
