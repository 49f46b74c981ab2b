import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { PermissionRule } from '../../config/index.ts';
import { readJson, writeFileAtomic } from '../../lib/index.ts';
import type { ProposedRule } from '../../protocol/index.ts';
import type { Tool } from '../tool.ts';
import type { PlaceRules } from '../tools/index.ts';
import { decideCall, decideCommand, type RuleResult, type SourcedRule } from './decide.ts';
import { learnedRule, proposeRule } from './learn.ts';
import type { ReadOnlyPlace } from './read-only.ts';

const Saved = v.object({ version: v.literal(1), rules: v.array(PermissionRule) });

/** File of the rules that a user saved for one workspace, in the user's own state. */
export const savedRulesFile = (stateDirectory: string): string => join(stateDirectory, 'rules.json');

/** Rules that a user saved for a workspace. A damaged file yields none and a problem. */
export function readSavedRules(stateDirectory: string): {
  readonly rules: readonly PermissionRule[];
  readonly problem?: string;
} {
  const read = readJson(savedRulesFile(stateDirectory), Saved);
  if (read.kind === 'ok') return { rules: read.value.rules };
  return read.kind === 'missing'
    ? { rules: [] }
    : { rules: [], problem: `${savedRulesFile(stateDirectory)} ${read.problem}` };
}

/** @throws the system's error */
export function writeSavedRules(stateDirectory: string, rules: readonly PermissionRule[]): void {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
  writeFileAtomic(savedRulesFile(stateDirectory), `${JSON.stringify({ version: 1, rules }, undefined, 2)}\n`, {
    mode: 0o600,
  });
}

export interface RuleBookOptions {
  /** `Permissions.Rules`. */
  readonly configured: readonly PermissionRule[];
  /** Directory of the user's state of this workspace. */
  readonly stateDirectory: string;
  readonly places: PlaceRules;
}

/** Place of a call. */
export interface CallPlace {
  /** Canonical and absolute. */
  readonly workspacePath: string;
  /** Tool chains of the user's shell, which the command would get. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** Rules of a workspace: from the configuration, and saved by its user. */
export class RuleBook {
  readonly #options: RuleBookOptions;

  constructor(options: RuleBookOptions) {
    this.#options = options;
  }

  /** Decides about a call. @param args parsed */
  async judge(tool: Tool, args: unknown, at: CallPlace): Promise<RuleResult> {
    const { places } = this.#options;
    const rules = this.rules();
    const command = commandIn(tool, args);
    const place = tool.placeOf?.(args);
    if (tool.name === inputTool && tool.source === 'builtin') return this.#judgeInput(args, rules);
    if (command === undefined) {
      const target = place === undefined ? addressIn(args) : await places.nameOf(place, at.workspacePath);
      return decideCall(tool.name, target, rules);
    }
    return decideCommand(command, rules, await this.#placeOf(place, at));
  }

  /** Whether a call is a command that only reads, in the sandbox and to its end. Rules of the user do not count. */
  async isReading(tool: Tool, args: unknown, at: CallPlace): Promise<boolean> {
    const command = commandIn(tool, args);
    if (command === undefined) return false;
    const { background, outside } = args as { readonly background?: boolean; readonly outside?: boolean };
    if (background === true || outside === true) return false;
    const { decision } = await decideCommand(command, [], await this.#placeOf(tool.placeOf?.(args), at));
    return decision === 'allow';
  }

  async #placeOf(place: string | undefined, { workspacePath, environment }: CallPlace): Promise<ReadOnlyPlace> {
    const { places } = this.#options;
    const path = await places.searchPathOf(workspacePath, environment);
    return {
      cwd: () => places.directoryOf(place ?? '.', workspacePath),
      mayRead: (path) => places.mayRead(path, workspacePath),
      isTrustedProgram: (name) => places.isTrustedProgram(name, workspacePath, path),
      hasBlockedPaths: places.hasBlockedPaths,
    };
  }

  /**
   * Judges the input of a process, which may be a shell: rules that deny a command or ask about it also apply to input. A rule
   * that allows a command does not allow it as input.
   */
  async #judgeInput(args: unknown, rules: readonly SourcedRule[]): Promise<RuleResult> {
    const { text } = args as { readonly text: string };
    const strict = rules.filter(({ Decision }) => Decision !== 'allow');
    const asCommand = await decideCommand(text, strict, noPlace);
    return asCommand.decision === 'deny' || asCommand.decision === 'ask'
      ? asCommand
      : decideCall(inputTool, text, rules);
  }

  /** Rule to offer with the approval of a call. */
  async propose(tool: Tool, args: unknown): Promise<ProposedRule | undefined> {
    const command = commandIn(tool, args);
    return command === undefined ? undefined : proposeRule(command);
  }

  /** Saves a rule that the user agreed to. @throws the system's error */
  learn(rule: ProposedRule): void {
    const { stateDirectory } = this.#options;
    const { rules, problem } = readSavedRules(stateDirectory);
    // A damaged file is the user's to repair: writing would lose its denying rules.
    if (problem !== undefined) throw new Error(problem);
    const added = learnedRule(rule);
    if (rules.some((each) => JSON.stringify(each) === JSON.stringify(added))) return;
    writeSavedRules(stateDirectory, [...rules, added]);
  }

  /** All rules that hold now. */
  rules(): readonly SourcedRule[] {
    const { configured, stateDirectory } = this.#options;
    const { rules, problem } = readSavedRules(stateDirectory);
    return [
      ...configured.map((rule) => ({ ...rule, source: 'config' as const })),
      ...rules.map((rule) => ({ ...rule, source: 'saved' as const })),
      // A damaged file may have forbidden something.
      ...(problem === undefined ? [] : [{ Tool: '*', Decision: 'ask' as const, source: 'saved' as const }]),
    ];
  }
}

/** Tool that writes to the standard input of a command. */
const inputTool = 'ExecInput';

/** A place where no file may be read unasked. */
const noPlace: ReadOnlyPlace = {
  cwd: async () => '/',
  mayRead: async () => false,
  isTrustedProgram: () => false,
  hasBlockedPaths: true,
};

function commandIn(tool: Tool, args: unknown): string | undefined {
  if (tool.name !== 'Exec' || tool.source !== 'builtin') return undefined;
  const { command } = args as { readonly command: string };
  return command;
}

const addressIn = (args: unknown): string | undefined => {
  const { url } = (args ?? {}) as { readonly url?: unknown };
  return typeof url === 'string' ? url : undefined;
};
