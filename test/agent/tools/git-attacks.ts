/**
 * Repositories of many layouts in one workspace, a command that plants programs in them, and the git of a user who works there afterwards.
 * Every planted program appends its case to a file outside of the workspace.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Sandboxes } from '../../../src/agent/index.ts';
import { createExec } from '../../../src/agent/tools/exec/exec.ts';
import { removeTree } from '../../../src/review/git/index.ts';
import { call } from './run-tool.ts';

/** A user with a workspace, an upstream repository and a home, all in one directory. */
export class Scene {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-git-')));
  readonly workspace = join(this.root, 'workspace');
  readonly proof = join(this.root, 'proof');
  readonly upstream = join(this.root, 'upstream.git');
  readonly #home = join(this.root, 'home');
  readonly #sandboxes: Sandboxes | undefined;
  readonly #tool;
  readonly #turn = new AbortController();

  /** @param sandbox off: the positive control */
  constructor(sandbox: 'required' | 'off', isShared = true) {
    for (const path of [this.workspace, this.#home]) mkdirSync(path);
    writeFileSync(
      join(this.#home, '.gitconfig'),
      '[user]\n\tname = a\n\temail = a@b\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n',
    );
    this.#sandboxes = isShared ? new Sandboxes(this.environment) : undefined;
    this.#tool = createExec({
      ...{ timeoutMs: 300_000, maxTimeoutMs: 300_000, maxOutputChars: 100_000, sandbox, network: 'deny' },
      ...{ home: join(this.#home, '.oratorio'), pathRules: { blockedPaths: [], protectedDirectories: [] } },
      ...{ passEnvironment: [], secrets: [], environment: this.environment, sandboxes: this.#sandboxes },
    });
    execFileSync('git', ['init', '-q', '--bare', this.upstream], { env: this.environment });
  }

  /** A repository with one commit and the upstream repository as its remote. */
  get plain(): string {
    const path = join(this.root, 'plain');
    if (existsSync(path)) return path;
    mkdirSync(path);
    writeFileSync(join(path, 'file'), 'text\n');
    const remote = `git remote add origin ${quoted(this.upstream)}`;
    this.shell('../plain', 'git init -q', 'git add .', 'git commit -q -m first', remote);
    return path;
  }

  get environment(): Record<string, string> {
    return { PATH: process.env['PATH'] ?? '', HOME: this.#home, GIT_CONFIG_NOSYSTEM: '1' };
  }

  /** Runs a command as the agent does. */
  command(command: string) {
    const { signal } = this.#turn;
    return call(this.#tool, { command }, { workspacePath: this.workspace, threadId: 'thread_a', signal });
  }

  /** Ends the command that runs. */
  interrupt(): void {
    this.#turn.abort();
  }

  /** Runs git as the user does, outside. @returns exit code */
  git(directory: string, ...words: string[]): number {
    const cwd = join(this.workspace, directory);
    return spawnSync('git', words, { cwd, env: this.environment, stdio: 'ignore', timeout: 60_000 }).status ?? 1;
  }

  /**
   * Runs commands as the user does, outside: in one shell, because a fork of this process takes longer than most commands of git.
   * @returns standard output
   */
  shell(directory: string, ...commands: readonly string[]): string {
    const cwd = join(this.workspace, directory);
    const options = { cwd, env: this.environment, encoding: 'utf8', timeout: 300_000 } as const;
    return spawnSync('sh', ['-c', commands.join('\n')], { ...options, stdio: ['ignore', 'pipe', 'ignore'] }).stdout;
  }

  /** Commits of the first pull request of the upstream repository. */
  get pull(): { readonly base: string; readonly head: string } {
    const [base = '', head = ''] = this.shell(
      '../upstream.git',
      'tree=$(git hash-object -w -t tree /dev/null)',
      'base=$(git commit-tree "$tree" -m base)',
      'head=$(git commit-tree "$tree" -p "$base" -m head)',
      'git update-ref refs/heads/main "$base"',
      'git update-ref refs/pull/1/head "$head"',
      'echo "$base $head"',
    )
      .trim()
      .split(' ');
    return { base, head };
  }

  /** Cases whose programs have run. */
  get executed(): readonly string[] {
    return existsSync(this.proof) ? [...new Set(readFileSync(this.proof, 'utf8').trim().split('\n'))] : [];
  }

  async close(): Promise<void> {
    await this.#sandboxes?.close();
    // Some attacks, and checkouts of reviews, leave directories that only root can change.
    await removeTree(this.root);
  }
}

/** A repository in the workspace. Paths are relative to the workspace. */
export interface Layout {
  /** Directory of the user's work. */
  readonly directory: string;
  /** Git directory. */
  readonly git: string;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

type MakeLayout = (scene: Scene, name: string) => Layout;

function plain(scene: Scene, name: string): Layout {
  mkdirSync(join(scene.workspace, name), { recursive: true });
  // A copy starts no process.
  cpSync(scene.plain, join(scene.workspace, name), { recursive: true });
  return { directory: name, git: `${name}/.git` };
}

const changed =
  (change: (scene: Scene, layout: Layout) => void): MakeLayout =>
  (scene, name) => {
    const layout = plain(scene, name);
    change(scene, layout);
    return layout;
  };

const emptyScript = '#!/bin/sh\n';

/** Relative to the git directory. */
const sharedFile = ['..', 'shared.cfg'].join('/');

const remove = (scene: Scene, path: string) => rmSync(join(scene.workspace, path), { recursive: true, force: true });

export const layouts: Readonly<Record<string, MakeLayout>> = {
  plain,
  'without hooks, info and branches': changed((scene, { git }) => {
    for (const name of ['hooks', 'info', 'branches']) remove(scene, `${git}/${name}`);
  }),
  'hooks are a link into the files': changed((scene, { directory, git }) => {
    remove(scene, `${git}/hooks`);
    mkdirSync(join(scene.workspace, directory, 'githooks'));
    symlinkSync('../githooks', join(scene.workspace, git, 'hooks'));
  }),
  'hooks are a link to a missing directory': changed((scene, { git }) => {
    remove(scene, `${git}/hooks`);
    symlinkSync('../githooks', join(scene.workspace, git, 'hooks'));
  }),
  'hooks path in the files': changed((scene, { directory }) => {
    mkdirSync(join(scene.workspace, directory, '.husky/_'), { recursive: true });
    scene.git(directory, 'config', 'core.hooksPath', '.husky/_');
  }),
  'missing hooks path': changed((scene, { directory }) => {
    scene.git(directory, 'config', 'core.hooksPath', '.husky/_');
  }),
  'included file': changed((scene, { directory }) => {
    writeFileSync(join(scene.workspace, directory, 'shared.cfg'), '[core]\n\tabbrev = 12\n');
    scene.git(directory, 'config', 'include.path', sharedFile);
  }),
  'missing included file': changed((scene, { directory }) => {
    scene.git(directory, 'config', 'include.path', sharedFile);
  }),
  'a hook is a link into the files': changed((scene, { directory, git }) => {
    mkdirSync(join(scene.workspace, directory, 'githooks'));
    writeFileSync(join(scene.workspace, directory, 'githooks/post-commit'), emptyScript, { mode: 0o755 });
    symlinkSync('../../githooks/post-commit', join(scene.workspace, git, 'hooks/post-commit'));
  }),
  'a hook is a link to a missing file': changed((scene, { git }) => {
    symlinkSync('../../githooks/post-commit', join(scene.workspace, git, 'hooks/post-commit'));
  }),
  'a hook has a second name': changed((scene, { directory, git }) => {
    mkdirSync(join(scene.workspace, directory, 'githooks'));
    const file = join(scene.workspace, directory, 'githooks/post-commit');
    writeFileSync(file, emptyScript, { mode: 0o755 });
    linkSync(file, join(scene.workspace, git, 'hooks/post-commit'));
  }),
  'the configuration has a second name': changed((scene, { directory, git }) => {
    linkSync(join(scene.workspace, git, 'config'), join(scene.workspace, directory, 'shared.cfg'));
  }),
  'hooks path behind a link': changed((scene, { directory }) => {
    mkdirSync(join(scene.workspace, directory, 'real'));
    symlinkSync('real', join(scene.workspace, directory, 'githooks'));
    scene.git(directory, 'config', 'core.hooksPath', 'githooks');
  }),
  'included file behind a link': changed((scene, { directory }) => {
    writeFileSync(join(scene.workspace, directory, 'real.cfg'), '[core]\n\tabbrev = 12\n');
    symlinkSync('real.cfg', join(scene.workspace, directory, 'shared.cfg'));
    scene.git(directory, 'config', 'include.path', sharedFile);
  }),
  'hooks of husky': changed((scene, { directory }) => {
    const hooks = join(scene.workspace, directory, '.husky/_');
    mkdirSync(hooks, { recursive: true });
    writeFileSync(join(hooks, 'post-commit'), '#!/bin/sh\nsh .husky/post-commit\n', { mode: 0o755 });
    writeFileSync(join(hooks, '../post-commit'), 'true\n');
    scene.git(directory, 'config', 'core.hooksPath', '.husky/_');
  }),
  'missing program of a filter': changed((scene, { directory }) => {
    writeFileSync(join(scene.workspace, directory, '.gitattributes'), '* filter=own\n');
    scene.git(directory, 'config', 'filter.own.clean', './clean.sh %f');
  }),
  'program of a filter': changed((scene, { directory }) => {
    writeFileSync(join(scene.workspace, directory, 'clean.sh'), 'cat\n');
    writeFileSync(join(scene.workspace, directory, '.gitattributes'), '* filter=own\n');
    scene.git(directory, 'config', 'filter.own.clean', 'sh clean.sh');
  }),
  'hook of the user': changed((scene, { git }) => {
    writeFileSync(join(scene.workspace, git, 'hooks/post-checkout'), emptyScript, { mode: 0o755 });
  }),
  'worktree with a hooks path'(scene, name) {
    plain(scene, `${name}.main`);
    scene.git(`${name}.main`, 'worktree', 'add', '-q', `../${name}`);
    scene.git(`${name}.main`, 'config', 'core.hooksPath', '.husky/_');
    return { directory: name, git: `${name}.main/.git/worktrees/${name}` };
  },
  'submodule with a hooks path'(scene, name) {
    const layout = layouts['submodule']?.(scene, name) ?? { directory: name, git: name };
    mkdirSync(join(scene.workspace, layout.directory, '.husky/_'), { recursive: true });
    scene.git(layout.directory, 'config', 'core.hooksPath', '.husky/_');
    return layout;
  },
  'repository around the workspace'(scene, name) {
    mkdirSync(join(scene.workspace, name, '.husky/_'), { recursive: true });
    scene.git('..', 'init', '-q');
    scene.git('..', 'config', 'core.hooksPath', `workspace/${name}/.husky/_`);
    return { directory: name, git: '../.git' };
  },
  'configuration of worktrees': changed((scene, { directory }) => {
    scene.git(directory, 'config', 'extensions.worktreeConfig', 'true');
  }),
  worktree(scene, name) {
    plain(scene, `${name}.main`);
    scene.git(`${name}.main`, 'worktree', 'add', '-q', `../${name}`);
    return { directory: name, git: `${name}.main/.git/worktrees/${name}` };
  },
  submodule(scene, name) {
    plain(scene, `${name}.source`);
    plain(scene, name);
    scene.git(name, 'submodule', 'add', '-q', join(scene.workspace, `${name}.source`), 'part');
    scene.git(name, 'commit', '-q', '-m', 'part');
    return { directory: `${name}/part`, git: `${name}/.git/modules/part` };
  },
  nested(scene, name) {
    plain(scene, name);
    return plain(scene, `${name}/vendor/lib`);
  },
  bare(scene, name) {
    mkdirSync(join(scene.workspace, name));
    scene.git(name, 'init', '-q', '--bare');
    scene.git(name, 'remote', 'add', 'origin', scene.upstream);
    return { directory: name, git: name };
  },
  'separate git directory'(scene, name) {
    mkdirSync(join(scene.workspace, name));
    scene.git(name, 'init', '-q', '--separate-git-dir', `../${name}.data`);
    scene.git(name, 'commit', '-q', '--allow-empty', '-m', 'first');
    return { directory: name, git: `${name}.data` };
  },
  'git directory is a link'(scene, name) {
    const { directory, git } = plain(scene, name);
    execFileSync('mv', [git, `${name}.data`], { cwd: scene.workspace });
    symlinkSync(`../${name}.data`, join(scene.workspace, git));
    return { directory, git: `${name}.data` };
  },
  'no repository'(scene, name) {
    mkdirSync(join(scene.workspace, name));
    return { directory: name, git: `${name}/.git` };
  },
};

/** Names of directories, in several scripts and with signs of the shell. */
export const names = ['app', 'mit leer', 'grün', '日本', "o'k", 'a"b', '-dash', 'x$y', 'tab\tname', 'e\u0301'];

/** A way to plant a program. `$D`, `$G`: the repository; `$P` is the text of a program for a shell; `plant` makes `$D/planted`. */
interface Attack {
  readonly name: string;
  readonly script: string;
  /** Layouts on which it works without a sandbox. Absent: plain. */
  readonly control?: string;
  /** Disturbs no other attack of this kind in the same repository. */
  readonly isApart?: true;
}

const hook = (place: string, name: string) =>
  `[ -d "${place}" ] || mkdir -p "${place}"; printf '#!/bin/sh\\n%s\\n' "$P" > "${place}/${name}"; chmod +x "${place}/${name}"`;
const hookNames = [
  'post-commit',
  'pre-commit',
  'post-checkout',
  'reference-transaction',
  'post-index-change',
  'prepare-commit-msg',
];
/** A repository with a program, at `$D/evil`, for pointers to it. */
const evil = `[ -e "$D/evil" ] || { git init -q --bare "$D/evil"; git -C "$D/evil" config core.bare false; git -C "$D/evil" config core.worktree "$PWD/$D"; git -C "$D/evil" config core.fsmonitor "$P; false"; ${hook('$D/evil/hooks', 'post-commit')}; }`;

/** Makes a repository at `$D/planted` unless it exists. */
const plant = 'plant() { [ -e "$D/planted/.git" ] || git init -q "$D/planted"; }';

/** Settings whose value is a program, or leads to one. */
const programSettings = [
  'core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand core.attributesFile',
  'credential.helper alias.st diff.external diff.own.textconv diff.own.command merge.own.driver mergetool.own.cmd',
  'gpg.program gpg.ssh.program sequence.editor interactive.diffFilter pager.log uploadpack.packObjectsHook',
  'remote.origin.receivepack remote.origin.uploadpack remote.origin.vcs submodule.part.update trailer.own.command',
  'filter.own.smudge filter.own.process gc.recentObjectsHook init.templateDir includeIf.gitdir:/.path browser.own.cmd',
]
  .join(' ')
  .split(' ');

export const attacks: readonly Attack[] = [
  ...programSettings.map((key) => ({
    name: `setting ${key}`,
    isApart: true as const,
    script: `git -C "$D" config "${key}" "$P"; plant; git -C "$D/planted" config "${key}" "$P"`,
  })),
  {
    name: 'address of a helper',
    script:
      'plant; git -C "$D/planted" config branch.main.remote "ext::sh -c $P"; git -C "$D/planted" config remote.pushDefault "ext::$P"',
  },
  {
    name: 'rewritten address',
    script: 'git -C "$D" config "url.ext::$P.insteadOf" https://; git -C "$D" config core.sshCommand "$P"',
  },
  ...['a hook is a link into the files', 'a hook is a link to a missing file', 'a hook has a second name'].map(
    (control) => ({ name: `file of a hook: ${control}`, script: hook('$D/githooks', 'post-commit'), control }),
  ),
  {
    name: 'second name of the configuration',
    script: 'git config -f "$D/new.cfg" core.fsmonitor "$P; false"; cat "$D/new.cfg" >> "$D/shared.cfg"',
    control: 'the configuration has a second name',
  },
  {
    name: 'link of the hooks path replaced',
    script: `rm -rf "$D/githooks"; ${hook('$D/githooks', 'post-commit')}`,
    control: 'hooks path behind a link',
  },
  {
    name: 'link of the included file replaced',
    script: 'rm -f "$D/shared.cfg"; git config -f "$D/shared.cfg" core.fsmonitor "$P; false"',
    control: 'included file behind a link',
  },
  {
    name: 'script of husky',
    script: 'printf "%s\\n" "$P" > "$D/.husky/post-commit"',
    control: 'hooks of husky',
  },
  ...['missing program of a filter', 'program of a filter'].map((control) => ({
    name: `program that the configuration names: ${control}`,
    script: 'printf "#!/bin/sh\\n%s\\ncat\\n" "$P" > "$D/clean.sh"; chmod +x "$D/clean.sh"; echo new > "$D/file"',
    control,
  })),
  ...['worktree with a hooks path', 'submodule with a hooks path', 'repository around the workspace'].map(
    (control) => ({ name: `hook of a ${control}`, script: hook('$D/.husky/_', 'post-commit'), control }),
  ),
  {
    name: 'reflog is a link to a hook, and the name of a branch is a command',
    script: `printf '%s\\n' "$P" > "$D/p.sh"; git -C "$D" checkout -q -b 'x$(sh$\{IFS}p.sh)'; rm -f "$G/logs/HEAD"; ln -s "$PWD/$G/hooks/post-checkout" "$G/logs/HEAD"`,
    control: 'hook of the user',
  },
  {
    name: 'new repository that cannot be changed',
    script: `plant; ${hook('$D/planted/.git/hooks', 'post-commit')}; git -C "$D/planted" config core.fsmonitor "$P; false"; chmod 555 "$D/planted/.git/hooks" "$D/planted/.git"`,
  },
  {
    name: 'new repository in a directory that cannot be listed',
    script:
      'plant; git -C "$D/planted" config core.fsmonitor "$P; false"; chmod 311 "$D/planted/.git"; chmod 311 "$D/planted"',
  },
  {
    name: 'new repository in a directory outside of UTF-8',
    script:
      'N=$(printf "pl\\351"); git init -q "$D/$N"; git -C "$D/$N" config core.fsmonitor "$P; false"; ln -sfn "$N" "$D/planted"',
  },
  {
    name: 'new submodule',
    script: `git init -q "$D/source"; git -C "$D/source" -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git -C "$D" -c protocol.file.allow=always submodule --quiet add "$PWD/$D/source" planted; git -C "$D/planted" config core.fsmonitor "$P; false"`,
  },
  {
    name: 'new worktree',
    script:
      'git -C "$D" worktree add -q "$PWD/$D/planted"; git -C "$D" config extensions.worktreeConfig true; git -C "$D/planted" config --worktree core.fsmonitor "$P; false"',
  },
  {
    name: 'attributes of the repository',
    script:
      'mkdir -p "$G/info"; echo "* filter=x" > "$G/info/attributes"; git -C "$D" config filter.x.clean "$P; cat"; echo new > "$D/file"',
  },
  {
    name: 'include on a condition',
    script:
      'git config -f "$D/more.cfg" core.fsmonitor "$P; false"; git -C "$D" config "includeIf.gitdir:**.path" "$PWD/$D/more.cfg"',
  },
  {
    name: 'configuration renamed over by a link',
    script:
      'git config -f "$D/l.cfg" core.fsmonitor "$P; false"; ln -f "$D/l.cfg" "$D/m.cfg"; mv -f "$D/m.cfg" "$G/config"',
  },
  ...hookNames.map((name) => ({ name: `hook ${name}`, script: hook('$G/hooks', name) })),
  ...hookNames.map((name) => ({
    name: `hook ${name} in the hooks path`,
    script: hook('$D/.husky/_', name),
    control: 'hooks path in the files',
  })),
  {
    name: 'hook behind a link',
    script: hook('$D/githooks', 'post-commit'),
    control: 'hooks are a link to a missing directory',
  },
  {
    name: 'hooks replaced by a link',
    script: `rm -rf "$G/hooks"; ${hook('$D/other', 'post-commit')}; ln -s "$PWD/$D/other" "$G/hooks"`,
  },
  { name: 'hooks moved', script: `mv "$G/hooks" "$G/old"; ${hook('$G/hooks', 'post-commit')}` },
  {
    name: 'hooks path moved',
    script: `mv "$D/.husky" "$D/.old"; ${hook('$D/.husky/_', 'post-commit')}`,
    control: 'hooks path in the files',
  },
  { name: 'fsmonitor', script: 'git -C "$D" config core.fsmonitor "$P; false"' },
  { name: 'fsmonitor by hand', script: 'printf "[core]\\n\\tfsmonitor = \\"%s; false\\"\\n" "$P" >> "$G/config"' },
  {
    name: 'configuration replaced',
    script: 'cp "$G/config" "$G/new"; git config -f "$G/new" core.fsmonitor "$P; false"; mv "$G/new" "$G/config"',
  },
  {
    name: 'configuration removed',
    script:
      'cp "$G/config" "$G/new"; rm -f "$G/config"; git config -f "$G/new" core.fsmonitor "$P; false"; cp "$G/new" "$G/config"',
  },
  {
    name: 'configuration is a link',
    script: 'git config -f "$D/linked.cfg" core.fsmonitor "$P; false"; ln -sf "$PWD/$D/linked.cfg" "$G/config"',
  },
  { name: 'hooks path', script: `${hook('$D/mine', 'post-commit')}; git -C "$D" config core.hooksPath mine` },
  {
    name: 'worktree configuration',
    script: 'git config -f "$G/config.worktree" core.fsmonitor "$P; false"',
    control: 'configuration of worktrees',
  },
  {
    name: 'included file',
    script: 'git config -f "$D/shared.cfg" core.fsmonitor "$P; false"',
    control: 'missing included file',
  },
  {
    name: 'include',
    script:
      'git config -f "$D/more.cfg" core.fsmonitor "$P; false"; git -C "$D" config include.path "$PWD/$D/more.cfg"',
  },
  {
    name: 'filter',
    script:
      'echo "* filter=x" > "$D/.gitattributes"; git -C "$D" config filter.x.clean "$P; cat"; git -C "$D" config filter.x.smudge "$P; cat"; touch "$D/file"',
  },
  {
    name: 'signature',
    script:
      'printf "#!/bin/sh\\n%s\\nexit 1\\n" "$P" > "$D/sign"; chmod +x "$D/sign"; git -C "$D" config gpg.program "$PWD/$D/sign"; git -C "$D" config commit.gpgsign true',
  },
  { name: 'upload-pack', script: 'git -C "$D" config remote.origin.uploadpack "$P; git-upload-pack"' },
  {
    name: 'ext transport',
    script:
      'git -C "$D" config protocol.ext.allow always; git -C "$D" config remote.origin.url "ext::sh -c %S$P"; git -C "$D" config core.fsmonitor "$P; false"',
  },
  {
    name: 'common directory',
    script: `${evil}; cp -r "$D/evil" "$D/common"; rm -f "$D/common/config"; git config -f "$D/common/config" core.fsmonitor "$P; false"; printf '%s\\n' "$PWD/$D/common" > "$G/commondir"`,
  },
  { name: 'git directory replaced', script: `${evil}; mv "$D/.git" "$D/.old"; cp -r "$D/evil" "$D/.git"` },
  { name: 'git file', script: `${evil}; mv "$D/.git" "$D/.old"; printf 'gitdir: evil\\n' > "$D/.git"` },
  { name: 'git link', script: `${evil}; mv "$D/.git" "$D/.old"; ln -s evil "$D/.git"` },
  {
    name: 'directory replaced',
    script: `${evil}; cp -r "$D/evil" "$D.evil"; git -C "$D.evil" config core.worktree "$PWD/$D"; mv "$D" "$D.moved"; mkdir "$D"; mv "$D.evil" "$D/.git"`,
  },
  { name: 'new repository', script: 'plant; git -C "$D/planted" config core.fsmonitor "$P; false"' },
  {
    name: 'new repository with hooks',
    script: `plant; ${hook('$D/planted/.git/hooks', 'post-commit')}`,
  },
  {
    name: 'new repository in odd words',
    script: 'plant; printf "[core] fsmonitor = \\\\\\n \\"%s; false\\" # x\\n" "$P" >> "$D/planted/.git/config"',
  },
  {
    name: 'new git file',
    script: `${evil}; mkdir -p "$D/planted"; git -C "$D/evil" config core.worktree "$PWD/$D/planted"; printf 'gitdir: ../evil\\n' > "$D/planted/.git"`,
  },
  {
    name: 'new git link',
    script: `${evil}; mkdir -p "$D/planted"; git -C "$D/evil" config core.worktree "$PWD/$D/planted"; ln -s ../evil "$D/planted/.git"`,
  },
  {
    name: 'new bare repository',
    script:
      'git init -q --bare "$D/planted"; git -C "$D/planted" config core.bare false; git -C "$D/planted" config core.worktree "$PWD/$D"; git -C "$D/planted" config core.fsmonitor "$P; false"',
  },
  {
    name: 'bare repository by its parts',
    script:
      'mkdir -p "$D/planted/objects" "$D/planted/refs"; echo "ref: refs/heads/main" > "$D/planted/HEAD"; printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = %s\\n\\tfsmonitor = \\"%s; false\\"\\n" "$PWD/$D" "$P" > "$D/planted/config"',
  },
  {
    name: 'worktree of a new repository',
    script: `git init -q "$D/base"; git -C "$D/base" -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git -C "$D/base" worktree add -q ../planted; git -C "$D/base" config extensions.worktreeConfig true; git config -f "$D/base/.git/worktrees/planted/config.worktree" core.fsmonitor "$P; false"`,
  },
  {
    name: 'submodule directory',
    script: `${evil}; mkdir -p "$G/modules"; cp -r "$D/evil" "$G/modules/x"; mkdir -p "$D/planted"; git -C "$G/modules/x" config core.worktree "$PWD/$D/planted"; printf 'gitdir: %s\\n' "$PWD/$G/modules/x" > "$D/planted/.git"`,
  },
  {
    name: 'git directory in a writable part',
    script: `${evil}; cp -r "$D/evil" "$G/refs/x"; mkdir -p "$D/planted"; git -C "$G/refs/x" config core.worktree "$PWD/$D/planted"; printf 'gitdir: %s\\n' "$PWD/$G/refs/x" > "$D/planted/.git"`,
  },
  {
    name: 'objects moved',
    script: `${evil}; mv "$G/objects" "$G/objects.old"; cp -r "$D/evil/objects" "$G/objects"; mkdir -p "$G/objects/info"; printf '%s\\n' "$PWD/$D/evil/objects" > "$G/objects/info/alternates"; git -C "$D" config core.fsmonitor "$P; false"`,
  },
];

/** A batch: repositories of one workspace with the attacks on each. */
export interface Batch {
  readonly repositories: readonly {
    readonly layout: string;
    readonly name: string;
    /** Positions in `attacks`. */
    readonly attacks: readonly number[];
    readonly isCollected: boolean;
  }[];
}

const repository = fc.record({
  layout: fc.constantFrom(...Object.keys(layouts)),
  name: fc.constantFrom(...names),
  attacks: fc.array(fc.nat(attacks.length - 1), { minLength: 20, maxLength: 20 }),
  isCollected: fc.boolean(),
});

/** Ten repositories with twenty attacks each. */
export const batches: fc.Arbitrary<Batch> = fc.record({
  repositories: fc.array(repository, { minLength: 10, maxLength: 10 }),
});

const shuffled = <T>(all: readonly T[]): fc.Arbitrary<T[]> => fc.shuffledSubarray([...all], { minLength: all.length });
const layoutNames = Object.keys(layouts);
const ways = { minLength: layoutNames.length, maxLength: layoutNames.length };

/**
 * A repository of each layout with twenty attacks: those that work on this layout alone, and others, of which each attack
 * takes its turn. In batches of ten.
 */
export const everyLayout: fc.Arbitrary<readonly Batch[]> = fc
  .tuple(shuffled(layoutNames), shuffled([...attacks.keys()]), fc.array(repository, ways))
  .map(([order, deck, drawn]) => {
    const repositories = drawn.map(({ name, isCollected }, at) => {
      const layout = order[at] ?? 'plain';
      const own = [...attacks.keys()].filter((position) => attacks[position]?.control === layout);
      const others = Array.from({ length: 20 - own.length }, (_, n) => deck[(at * 20 + n) % deck.length] ?? 0);
      return { layout, name, attacks: [...own, ...others], isCollected };
    });
    return Array.from({ length: Math.ceil(repositories.length / 10) }, (_, batch) => ({
      repositories: repositories.slice(batch * 10, batch * 10 + 10),
    }));
  });

/**
 * Makes the repositories, runs the attacks in one command, then works in each of them.
 *
 * @param own work in a directory, in place of that of the user
 * @returns cases that ran
 */
export async function runBatch(
  scene: Scene,
  { repositories }: Batch,
  own?: (directory: string) => Promise<void>,
): Promise<readonly string[]> {
  const made = repositories.map((each, at) => {
    const { directory, git } = layouts[each.layout]?.(scene, `${at}${each.name}`) ?? { directory: '.', git: '.git' };
    return { ...each, directory, git, at };
  });
  const scripts = made.flatMap(({ attacks: chosen, directory, git, at, layout }) =>
    chosen.map((position, index) => {
      const { name, script } = attacks[position] ?? { name: '', script: '' };
      const program = `echo ${quoted(`${at}.${index} ${name} on ${layout}`)} >> ${scene.proof}`.replaceAll("'", '');
      return `D=${quoted(directory)}; G=${quoted(git)}; P=${quoted(program)}; ${script}`;
    }),
  );
  writeFileSync(join(scene.workspace, 'attacks.sh'), [plant, ...scripts].join('\n'));
  // One small shell without subshells: starting processes takes most of the time.
  await scene.command('cd -P . && sh attacks.sh > /dev/null 2>&1');
  // Without a sandbox git of the attacks themselves runs programs.
  if (own) rmSync(scene.proof, { force: true });
  if (own) for (const { directory } of made) await own(directory);
  else for (const { directory, isCollected } of made) work(scene, directory, isCollected);
  return scene.executed;
}

/** Prints the settings of git, then works. */
const userCommands = [
  'git config --list',
  'exec > /dev/null',
  'git status',
  'git add .',
  'git commit -q --allow-empty -m work',
  'git checkout -q -B work',
  'git fetch -q',
];

/** Work of a user in a directory and in the planted one. */
export function work(scene: Scene, directory: string, isCollected: boolean): void {
  for (const place of [directory, `${directory}/planted`]) {
    if (!existsSync(join(scene.workspace, place))) continue;
    const settings = scene.shell(place, ...userCommands, ...(isCollected ? ['git gc -q'] : []));
    for (const line of settings.split('\n'))
      if (line.includes(scene.proof))
        appendFileSync(scene.proof, `${/\d+\.\d+ .*? on [^>]*/.exec(line)?.[0] ?? line}\n`);
  }
}
