import { discoverHub, HubClient, type RecordAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { explain } from '../explain.ts';
import { warnIfRestricted } from '../restricted.ts';
import { banner, serve } from '../serve.ts';
import { canonical, workspacePath } from '../workspace.ts';

/** `oratorio api`: serves the chat-completions API of one workspace until it is stopped (specification §4.1). */
export async function run(context: CommandContext): Promise<number> {
  const path = workspacePath(context, context.options['workspace']);
  warnIfRestricted(context, path);
  try {
    return await serve({
      workspacePath: path,
      env: context.env,
      mode: 'api',
      onServing: (serving) => {
        const { api } = serving.endpoints;
        banner(context, serving, endpointsAt(String(api))).catch((error: unknown) =>
          context.output.failure(explain(error)),
        );
      },
    });
  } catch (error) {
    if (error instanceof CliError && error.exit === 'workspaceLocked') return shared(context, canonical(path), error);
    throw error;
  }
}

const endpointsAt = (api: string): readonly string[] => [
  `chat      POST ${api}/v1/chat/completions`,
  `health    GET  ${api}/v1/health`,
];

/** The Hub's agent server holds the workspace: prints where it serves the API. @throws `held`, with how it can */
async function shared({ output, home, signal }: CommandContext, path: string, held: CliError): Promise<number> {
  const managed = await managedBy(home, path, signal);
  if (!managed) throw held;
  const api = managed.endpoints['api'];
  if (api === undefined) {
    const workspace = quoted(path);
    throw new CliError(
      held.exit,
      `The Hub's agent server holds ${path} and does not serve the chat API.`,
      `Run: oratorio stop ${workspace} && oratorio api --workspace ${workspace}\n  Or set Api.Enabled to true in its config.json, then: oratorio restart ${workspace}`,
    );
  }
  output.line(`The Hub's agent server serves this API already: ${output.colors.bold(path)}`);
  for (const endpoint of endpointsAt(api)) output.line(`  ${endpoint}`);
  return exitCodes.ok.code;
}

async function managedBy(home: string, path: string, signal: AbortSignal): Promise<RecordAnswer | undefined> {
  const found = await discoverHub({ home, signal });
  if (found.kind === 'none') return undefined;
  const record = await new HubClient(found.lock).byWorkspace(path, { signal });
  return record.startedByHub ? record : undefined;
}
