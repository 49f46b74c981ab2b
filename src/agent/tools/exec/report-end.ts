import { visible } from '../../../lib/index.ts';
import type { ToolResult } from '../../tool.ts';
import type { GitFinding } from './held-directory.ts';
import type { SandboxNetwork } from './mounts.ts';
import type { CommandEnd } from './run-command.ts';

/** Facts about a run that explain its end. */
export interface RunFacts {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly network: SandboxNetwork;
  readonly isSandboxed: boolean;
  /** Set aside in git directories, and files whose set-id bits were cleared, after the command. */
  readonly asides?: readonly GitFinding[];
}

const maxAsides = 20;

const nameOf = ({ path, what }: GitFinding): string => `${visible(path)} (${visible(what)})`;

/** Names the files that other programs would have run or read outside of the sandbox. */
function aboutFindings(findings: readonly GitFinding[]): string[] {
  const asides = findings.filter(({ isCleared }) => !isCleared);
  const cleared = findings.filter(({ isCleared }) => isCleared);
  return [
    ...(asides.length > 0
      ? [
          `Set aside, because git would run or read it outside of the sandbox: ${listed(asides, nameOf)}. Only the user can put it back.`,
        ]
      : []),
    ...(cleared.length > 0
      ? [
          `Set-id bits cleared, because other users would run it with the rights of this one: ${listed(cleared, ({ path }) => visible(path))}.`,
        ]
      : []),
  ];
}

function listed(findings: readonly GitFinding[], name: (finding: GitFinding) => string): string {
  const more = findings.length > maxAsides ? [`and ${findings.length - maxAsides} more`] : [];
  return [...findings.slice(0, maxAsides).map(name), ...more].join(', ');
}

/** Messages of programs that may not write, or reach no network. */
const writeRefusals = /Read-only file system|EROFS|Permission denied|Operation not permitted|EACCES|EPERM/;
const networkRefusals =
  /Network is unreachable|Connection refused|Could not resolve|Temporary failure in name resolution|Name or service not known|ENETUNREACH|ECONNREFUSED|EAI_AGAIN|ENOTFOUND|getaddrinfo|No route to host|dial tcp/;

/** Says that the sandbox may be the reason of a failure, and what to do. */
function aboutSandbox(output: string, { isSandboxed, network }: RunFacts): string[] {
  if (!isSandboxed) return [];
  const isClosed = network === 'deny' && networkRefusals.test(output);
  if (!isClosed && !writeRefusals.test(output)) return [];
  const why = isClosed ? 'it reaches no network but its own' : 'only the workspace and /tmp can be written';
  return [
    `This may be the sandbox: ${why}. If the command must go further, call Exec with outside: true and a reason; the user is asked.`,
  ];
}

/** The output, then everything about the end that the model should know. */
export function reportEnd(end: CommandEnd, output: string, facts: RunFacts): ToolResult {
  const { timeoutMs, maxTimeoutMs } = facts;
  const { cause, exitCode, signal, sweep } = end;
  const notes = [
    ...(cause === 'timedOut'
      ? [`The command was ended because it took longer than ${timeoutMs} ms. timeoutMs can be at most ${maxTimeoutMs}.`]
      : []),
    ...(cause === 'stopped' ? ['The command was ended because no agent server came back in time.'] : []),
    ...(cause === 'exited' && signal !== null ? [`The command was ended by ${signal}.`] : []),
    ...(cause === 'exited' && sweep.ended > 0 ? ['Processes it left in the background were ended with it.'] : []),
    ...(sweep.remaining.length > 0
      ? [`Processes that could not be ended: ${sweep.remaining.map(({ pid }) => pid).join(', ')}.`]
      : []),
    ...aboutFindings(facts.asides ?? []),
    ...(exitCode !== null && exitCode !== 0 ? [`Exit code ${exitCode}.`, ...aboutSandbox(output, facts)] : []),
  ];
  const text = [output.trimEnd() === '' ? '(no output)' : output.trimEnd(), notes.join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
  return { text, isError: cause !== 'exited' || exitCode !== 0, ...(exitCode !== null && { exitCode }) };
}
