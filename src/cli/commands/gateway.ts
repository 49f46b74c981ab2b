import type { CommandContext } from '../command.ts';
import { explain } from '../explain.ts';
import { pageFor } from '../page.ts';
import { banner, serve } from '../serve.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio gateway`: every HTTP service of one workspace; those with the same address share a port (specification §1). */
export async function run(context: CommandContext): Promise<number> {
  return serve({
    workspacePath: workspacePath(context, context.options['workspace']),
    env: context.env,
    mode: 'gateway',
    onServing: (serving) => {
      const { api, agui, dashboard } = serving.endpoints;
      const endpoints = [
        `chat      POST ${api}/v1/chat/completions`,
        `health    GET  ${api}/v1/health`,
        ...(agui === undefined ? [] : [`ag-ui     POST ${agui}`]),
        ...(dashboard === undefined ? [] : [`dashboard ${pageFor(context, dashboard, serving.dashboardToken)}`]),
      ];
      banner(context, serving, endpoints).catch((error: unknown) => context.output.failure(explain(error)));
    },
  });
}
