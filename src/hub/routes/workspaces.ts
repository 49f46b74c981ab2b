import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import {
  ConfigChangeError,
  ConfigError,
  chooseAgent,
  InitError,
  initWorkspace,
  LockedFileError,
  TrustError,
  trustConsequence,
  trustQuestion,
  workspaceTrust,
} from '../../config/index.ts';
import { type AnyRoute, json } from '../../http/index.ts';
import {
  type AgentChosen,
  AgentInput,
  type MadeWorkspace,
  TrustAnswer,
  type TrustRequest,
  WorkspaceInput,
} from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

export interface WorkspaceRoutesOptions {
  readonly registry: Pick<Registry, 'canonical'>;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Maps errors of `config` to errors of the Hub's API. */
export function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TrustError) throw hubError('trustRefused', error.message);
    if (error instanceof ConfigError || error instanceof ConfigChangeError)
      throw hubError('invalidConfig', error.message);
    if (error instanceof LockedFileError) throw hubError('invalidConfig', error.message);
    if (error instanceof InitError) throw hubError('invalidRequest', error.message);
    throw error;
  }
}

/** Routes that create and trust a workspace, with the same questions and rights as in a terminal. */
export function workspaceRoutes(bind: Bind, options: WorkspaceRoutesOptions): AnyRoute[] {
  const { registry, home, environment: env } = options;

  function directoryOf(path: string): string {
    const directory = path.startsWith('~/') ? join(env['HOME'] ?? homedir(), path.slice(2)) : path;
    if (!isAbsolute(directory) || directory.includes('\0'))
      throw hubError('invalidRequest', 'The directory must be an absolute path, or begin with ~/.');
    return directory;
  }

  const choose = (workspace: string, agent: string): AgentChosen => ({
    change: chooseAgent({ home, workspace }, agent === 'oratorio' ? undefined : { name: agent }),
  });

  function make(input: { readonly path: string; readonly agent?: string | undefined }): MadeWorkspace {
    const { workspacePath, created } = initWorkspace(directoryOf(input.path), env);
    if (input.agent !== undefined) choose(workspacePath, input.agent);
    return { workspacePath, created };
  }

  const ask = (path: unknown) => {
    const workspace = registry.canonical(path);
    const question = trustQuestion({ home, workspace, env });
    const { lines, revision } = question;
    const answer = (): TrustRequest => ({
      ...{ workspacePath: workspace, trust: workspaceTrust({ home, workspace }).trust },
      ...{ lines: [...lines], consequence: trustConsequence, revision },
    });
    return { question, answer };
  };

  return [
    bind(hubRoutes.makeWorkspace, async (context) => {
      const input = await context.json(WorkspaceInput);
      return json(
        200,
        refusing(() => make(input)),
      );
    }),
    bind(hubRoutes.chooseAgent, async (context) => {
      const { workspacePath, agent } = await context.json(AgentInput);
      return json(
        200,
        refusing(() => choose(registry.canonical(workspacePath), agent)),
      );
    }),
    bind(hubRoutes.askTrust, ({ query }) =>
      json(
        200,
        refusing(() => ask(query.get('path') ?? undefined).answer()),
      ),
    ),
    bind(hubRoutes.answerTrust, async (context) => {
      const { workspacePath, revision } = await context.json(TrustAnswer);
      return json(
        200,
        refusing(() => {
          const { question, answer } = ask(workspacePath);
          if (question.revision !== revision)
            throw hubError('trustRefused', 'The settings changed while the question was open: review them again.');
          question.agree();
          return answer();
        }),
      );
    }),
  ];
}
