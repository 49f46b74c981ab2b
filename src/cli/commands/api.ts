import type { CommandContext } from '../command.ts';
import { explain } from '../explain.ts';
import { warnIfRestricted } from '../restricted.ts';
import { banner, serve } from '../serve.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio api`: serves the chat-completions API of one workspace until it is stopped (specification §4.1). */
export async function run(context: CommandContext): Promise<number> {
  const path = workspacePath(context, context.options['workspace']);
  warnIfRestricted(context, path);
  return serve({
    workspacePath: path,
    env: context.env,
    mode: 'api',
    onServing: (serving) => {
      const { api } = serving.endpoints;
      const endpoints = [`chat      POST ${api}/v1/chat/completions`, `health    GET  ${api}/v1/health`];
      banner(context, serving, endpoints).catch((error: unknown) => context.output.failure(explain(error)));
    },
  });
}
