import { readText } from '../stack/index.ts';
import { childEnvironment, type Environment } from './child-environment.ts';
import { readProject } from './compose-project.ts';
import { quoteDetector, withoutEnvQuotes } from './env-quotes.ts';
import { runProgram } from './run.ts';
import type { Engine, RunOptions, RunResult } from './types.ts';

/** Engine and composition tool of this machine. */
export interface FoundEngine {
  readonly runtime: Engine['runtime'];
  readonly compose: Engine['compose'];
  /** `docker` or `podman`. */
  readonly program: string;
  /** The composition tool: `docker compose`, `docker-compose`, or a path. */
  readonly composeProgram: readonly [string, ...string[]];
  /** For all of them, e.g. where podman's socket is. */
  readonly extra?: Environment;
}

/** Runs commands on a discovered engine. Each call gets an environment of its own, made of the variables it needs. */
export function engineOf(found: FoundEngine, shell: Environment): Engine {
  const { runtime, compose, program, composeProgram, extra = {} } = found;
  const [composeCommand, ...composeWords] = composeProgram;
  return {
    runtime,
    compose,
    run: (args, options) =>
      runProgram({
        ...options,
        program,
        args,
        name: `${program} ${args[0] ?? ''}`,
        env: childEnvironment(shell, { extra }),
      }),
    async runCompose(stack, args, { files, ...options }): Promise<RunResult> {
      const project = readProject(stack);
      const where = ['--project-directory', stack.directory, '--env-file', stack.env, '--project-name', project.name];
      const compositions = (files ?? project.files).flatMap((file) => ['--file', file]);
      const { onLine } = options;
      const env = readText(stack.env);
      const isQuote = quoteDetector(env);
      const result = await runProgram({
        ...options,
        ...(onLine && { onLine: (line: string) => isQuote(line) || onLine(line) }),
        ...secretsOf(options, project.secrets),
        program: composeCommand,
        args: [...composeWords, ...where, ...compositions, '--ansi', 'never', ...quietly(args)],
        name: `${composeProgram.join(' ')} ${args[0] ?? ''}`,
        env: childEnvironment(shell, { extra, without: project.values.keys() }),
      });
      return withoutEnvQuotes(result, env);
    },
  };
}

const secretsOf = ({ secrets = [] }: RunOptions, more: readonly string[]) => ({ secrets: [...secrets, ...more] });

/** Adds `--quiet` to `config`, whose output contains the secrets. */
function quietly(args: readonly string[]): readonly string[] {
  const isQuiet = args.some((word) => ['-q', '--quiet', '--no-interpolate', '--services'].includes(word));
  return args[0] !== 'config' || isQuiet ? args : ['config', '--quiet', ...args.slice(1)];
}
