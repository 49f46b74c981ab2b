import { lstatSync, readdirSync, rmdirSync } from 'node:fs';
import { codeOf } from './errors.ts';
import type { GitFiles, GitSide } from './git-files.ts';
import { commitPattern, commonNames, type GitState, partOf, refPattern } from './git-state.ts';
import type { RunGit } from './ignored.ts';

export interface GitWriterOptions {
  readonly files: GitFiles;
  readonly git: RunGit;
  readonly onStep?: ((step: string) => void) | undefined;
}

const symbolic = 'ref: ';

/** Moves parts of a repository: refs by git, which compares them again, files under the locks of git. */
export class GitWriter {
  readonly #options: GitWriterOptions;

  constructor(options: GitWriterOptions) {
    this.#options = options;
  }

  /** @param names parts that are set to their state in `wanted`. @returns the reason why HEAD and all refs stay */
  async set(names: readonly string[], wanted: GitState, now: GitState): Promise<string | undefined> {
    const { onStep } = this.#options;
    const isHeadMoved = names.includes('HEAD');
    // HEAD leaves its branch before the branch is removed.
    onStep?.('git HEAD');
    if (isHeadMoved) {
      const problem = await this.#setHead(wanted.head);
      if (problem !== undefined) return problem;
    }
    onStep?.('git branches');
    const refs = names.filter((name) => name.startsWith('refs/'));
    const problem = await this.#setRefs(refs, wanted, now);
    if (problem !== undefined && isHeadMoved) {
      const isBack = (await this.#setHead(now.head)) === undefined;
      if (!isBack) return `${problem}; HEAD was moved`;
    }
    if (problem !== undefined) return problem;
    this.#setFiles(names, wanted, now);
    return undefined;
  }

  async #setHead(head: string): Promise<string | undefined> {
    const refused = 'git refused to move HEAD';
    if (commitPattern.test(head)) {
      return (await this.#options.git(['update-ref', '--no-deref', 'HEAD', head], '')) === undefined
        ? refused
        : undefined;
    }
    if (!head.startsWith(symbolic) || !refPattern.test(head.slice(symbolic.length))) return 'HEAD cannot be understood';
    return this.#options.files.replace('HEAD', [Buffer.from(`${head}\n`, 'latin1')]) ? undefined : refused;
  }

  async #setRefs(names: readonly string[], wanted: GitState, now: GitState): Promise<string | undefined> {
    const { git, files } = this.#options;
    const isSymbolic = (name: string) => [wanted, now].some(({ refs }) => refs[name]?.startsWith(symbolic));
    const plain = names.filter((name) => wanted.refs[name] !== now.refs[name] && !isSymbolic(name));
    const commands = plain.map((name) => commandOf(name, wanted.refs[name], now.refs[name]));
    const run = async (lines: readonly string[]) =>
      lines.length === 0 || (await git(['update-ref', '--stdin', '-z'], lines.join(''))) !== undefined;
    if (!(await run(commands))) {
      // A ref in the place of a directory of refs, as after a rename: git requires the old refs to be gone first.
      const going = commands.filter((line) => line.includes('\0delete '));
      const coming = commands.filter((line) => !line.includes('\0delete '));
      const isPossible = going.length > 0 && coming.length > 0 && (await run(going));
      if (!isPossible || !(await run(coming))) {
        if (isPossible)
          await run(
            plain.flatMap((name) =>
              wanted.refs[name] === undefined ? commandOf(name, now.refs[name], undefined) : [],
            ),
          );
        return 'git refused to move a branch';
      }
    }
    for (const name of names.filter(isSymbolic)) {
      const value = wanted.refs[name];
      files.replace(name, value === undefined ? null : [Buffer.from(`${value}\n`, 'latin1')], 'common');
    }
    return undefined;
  }

  #setFiles(names: readonly string[], wanted: GitState, now: GitState): void {
    const { files } = this.#options;
    const parts = new Set(names);
    const [target, present] = [wanted.files ?? {}, now.files ?? {}];
    const directories = new Set<string>();
    for (const file of new Set([...Object.keys(present), ...Object.keys(target)])) {
      if (!parts.has(partOf(file)) || target[file] === present[file]) continue;
      const side: GitSide = commonNames.includes(file) ? 'common' : 'directory';
      const text = target[file];
      files.replace(file, text === undefined ? null : [Buffer.from(text, 'latin1')], side);
      if (side === 'directory' && file.includes('/')) directories.add(file.slice(0, file.lastIndexOf('/')));
    }
    for (const directory of [...directories].sort().reverse()) this.#removeEmpty(directory);
  }

  #removeEmpty(directory: string): void {
    const { files } = this.#options;
    try {
      if (!lstatSync(files.at(directory), { throwIfNoEntry: false })?.isDirectory()) return;
      if (readdirSync(files.at(`${directory}/.`)).length === 0) rmdirSync(files.at(directory));
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
    }
  }
}

/** One command of `git update-ref --stdin -z`. */
function commandOf(name: string, wanted: string | undefined, present: string | undefined): string {
  if (wanted === undefined) return `option no-deref\0delete ${name}\0${present}\0`;
  return present === undefined
    ? `option no-deref\0create ${name}\0${wanted}\0`
    : `option no-deref\0update ${name}\0${wanted}\0${present}\0`;
}
