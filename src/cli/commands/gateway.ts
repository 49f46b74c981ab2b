import type { CommandContext } from '../command.ts';
import { explain } from '../explain.ts';
import { pageFor } from '../page.ts';
import { warnIfRestricted } from '../restricted.ts';
import { banner, type Serving, serve } from '../serve.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio gateway`: every enabled HTTP service of one workspace; those with the same address share a port (specification §1). */
export async function run(context: CommandContext): Promise<number> {
  const path = workspacePath(context, context.options['workspace']);
  warnIfRestricted(context, path);
  return serve({
    workspacePath: path,
    env: context.env,
    mode: 'gateway',
    onServing: (serving) => {
      banner(context, serving, endpointsOf(context, serving)).catch((error: unknown) =>
        context.output.failure(explain(error)),
      );
    },
  });
}

function endpointsOf(context: CommandContext, { endpoints, dashboardToken }: Serving): string[] {
  const { api, agui, dashboard } = endpoints;
  const served = [
    ...(api === undefined ? [] : [`chat      POST ${api}/v1/chat/completions`, `health    GET  ${api}/v1/health`]),
    ...(agui === undefined ? [] : [`ag-ui     POST ${agui}`]),
    ...(dashboard === undefined ? [] : [`dashboard ${pageFor(context, dashboard, dashboardToken)}`]),
  ];
  if (served.length === 0) {
    context.output.warn('No HTTP service is enabled: set Api.Enabled, AgUi.Enabled or DashBoard.Enabled to true.');
  } else if (api === undefined) {
    context.output.note('The chat API is not served: set Api.Enabled to true, or run: oratorio api');
  }
  return served;
}
