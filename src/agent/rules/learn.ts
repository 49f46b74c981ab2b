import type { PermissionRule } from '../../config/index.ts';
import type { ProposedRule } from '../../protocol/index.ts';
import { parseScript } from './script.ts';

/**
 * Programs whose name alone makes no useful rule: interpreters, wrappers, and those whose next words decide about everything. After
 * codex, `exec_policy.rs`.
 */
const neverLearned: ReadonlySet<string> = new Set(
  [
    'sh bash dash zsh ksh fish csh tcsh eval exec source . command builtin env xargs nohup time coproc sudo doas su trap alias',
    'python python2 python3 node deno bun ruby perl php lua R Rscript osascript pwsh powershell awk gawk mawk sed ed vi vim emacs',
    'git ssh scp rsync curl wget nc ncat socat docker podman kubectl nice setsid timeout stdbuf watch parallel find rm mv cp dd chmod chown',
    'kill pkill tee ln install make',
  ]
    .join(' ')
    .split(' '),
);
/** Programs whose second word is a command of its own. */
const withSubcommand: ReadonlySet<string> = new Set(
  'npm pnpm yarn cargo go dotnet mvn gradle bundle rake poetry uv pip pip3 composer mix rustup tox just nx turbo'.split(
    ' ',
  ),
);
/** Subcommands that run any following command. */
const runners: ReadonlySet<string> = new Set(
  'exec x dlx run-script create init install add i ci publish login'.split(' '),
);
/** Subcommands whose next word names a script or a task. */
const withName: ReadonlySet<string> = new Set(['run', 'task']);
const plainWord = /^[\w.:/@+-]+$/;

/** The rule that an approval of a command proposes; undefined: none would be narrow enough. */
export async function proposeRule(command: string): Promise<ProposedRule | undefined> {
  const { kind, commands } = await parseScript(command);
  const [words = []] = commands;
  if (kind !== 'plain' || commands.length !== 1) return undefined;
  const [program = '', second, third] = words;
  if (neverLearned.has(program) || !/^[\w.+-]+$/.test(program)) return undefined;
  if (!withSubcommand.has(program)) return words.length === 1 ? { tool: 'Exec', prefix: [program] } : undefined;
  if (second === undefined || !plainWord.test(second) || second.startsWith('-') || runners.has(second))
    return undefined;
  if (!withName.has(second)) return { tool: 'Exec', prefix: [program, second] };
  if (third === undefined || neverLearned.has(third) || !plainWord.test(third) || third.startsWith('-'))
    return undefined;
  return { tool: 'Exec', prefix: [program, second, third] };
}

/** The rule in the form of the settings. */
export const learnedRule = ({ tool, prefix }: ProposedRule): PermissionRule => ({
  Tool: tool,
  Prefix: [...prefix],
  Decision: 'allow',
});
