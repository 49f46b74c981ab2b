import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { PreparedReview, ReviewGit } from '../../../src/review/git/index.ts';
import { type Content, type Lab, put } from './helpers.ts';

export const hooks = [
  'applypatch-msg',
  'post-checkout',
  'post-commit',
  'post-index-change',
  'post-merge',
  'post-rewrite',
  'post-update',
  'pre-auto-gc',
  'pre-commit',
  'pre-receive',
  'push-to-checkout',
  'reference-transaction',
  'fsmonitor-watchman',
  'sendemail-validate',
  'update',
];

/** A file that exists when something of the attacker's ran. */
export class Canary {
  readonly directory: string;
  /** A command that leaves a trace. */
  readonly command: string;

  constructor(lab: Lab) {
    this.directory = join(lab.directory, 'canary');
    const script = join(this.directory, 'run.sh');
    put(script, `#!/bin/sh\necho "$0 $*" >> ${this.directory}/ran\ncat\n`, 0o755);
    this.command = script;
  }

  /** Programs that ran since the last call. */
  look(): string {
    const file = join(this.directory, 'ran');
    if (!existsSync(file)) return '';
    const said = readFileSync(file, 'utf8');
    rmSync(file);
    return said;
  }
}

/** The whole life of a review, which reads all files at once. */
export async function live(reviews: ReviewGit, target: Parameters<ReviewGit['prepare']>[0]): Promise<PreparedReview> {
  const found = await reviews.prepare(target);
  const readable = found.files.filter(({ status, isNameBroken }) => status !== 'deleted' && !isNameBroken);
  await Promise.allSettled(readable.map(({ path }) => found.readHead(path)));
  await reviews.verifyClean(found.worktreePath);
  return found;
}

/** Builds pull request 7 of these files upon a base of those. */
export function story(lab: Lab, head: Record<string, Content>, base: Record<string, Content> = { 'a.txt': 'one\n' }) {
  const baseSha = lab.upstream.commitFiles(base);
  const headSha = lab.upstream.commitFiles(head, [baseSha]);
  lab.upstream.setRef('refs/heads/main', baseSha);
  lab.upstream.setHead(7, headSha);
  return { base: baseSha, head: headSha };
}

export function configure(file: string, section: string, entries: Readonly<Record<string, string>>): void {
  const lines = Object.entries(entries).map(([key, value]) => `\t${key} = ${JSON.stringify(value)}\n`);
  appendFileSync(file, `[${section}]\n${lines.join('')}`);
}

/** Everything in a configuration that names a program or bends where git goes. */
export function plantConfig(file: string, command: string): void {
  configure(file, 'core', {
    hooksPath: join(command, '..'),
    fsmonitor: command,
    sshCommand: command,
    gitProxy: command,
    askPass: command,
    pager: command,
    editor: command,
    alternateRefsCommand: command,
    attributesFile: join(command, '..', 'attributes'),
  });
  configure(file, 'diff', { external: command });
  configure(file, 'diff "evil"', { command, textconv: command });
  configure(file, 'filter "evil"', { smudge: command, clean: command, process: command, required: 'true' });
  configure(file, 'merge "evil"', { driver: command });
  configure(file, 'alias', { fetch: `!${command}`, worktree: `!${command}`, status: `!${command}` });
  configure(file, 'credential', { helper: `!${command}` });
  configure(file, 'uploadpack', { packObjectsHook: command });
  configure(file, 'remote "oratorio"', { url: `ext::${command}`, uploadpack: command, vcs: 'evil' });
  configure(file, 'url "ext::sh -c evil"', { insteadOf: 'file://' });
  configure(file, 'protocol "ext"', { allow: 'always' });
  configure(file, 'gpg', { program: command });
  configure(file, 'pager', { 'for-each-ref': command, 'rev-list': command });
}

/** Runs git as a user who trusts the checkout; planted programs may make it fail. */
export function runOrdinaryGit(directory: string): void {
  spawnSync('git', ['diff-files', '-p'], { cwd: directory, env: { PATH: process.env['PATH'] }, stdio: 'ignore' });
}
