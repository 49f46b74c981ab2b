import { BackendStatus } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { pairs } from '../render.ts';
import { backendApi } from './backend-api.ts';

/** `oratorio backend status`: shows the version, role and settings of a backend, and whether it is ready. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const status = await backendApi(context, 'backend status').get('/status', BackendStatus);
  if (output.json) output.document(status);
  else for (const line of lines(status, output.colors)) output.line(line);
  return exitCodes.ok.code;
}

function lines(status: BackendStatus, colors: CommandContext['output']['colors']): string[] {
  const { green, yellow, bold } = colors;
  const yes = (is: boolean, otherwise: string) => (is ? green('yes') : yellow(otherwise));
  const { source, settingsProblem, deadJobs } = status;
  return [
    `Review backend ${bold(status.version)} ${status.node}`,
    ...pairs(
      [
        ['role', status.role ?? 'all'],
        ['storage', status.storage],
        ['repositories', String(status.repositories)],
        ['GitHub', source?.state === 'ready' ? green('ready') : yellow(source?.message ?? source?.state ?? 'unknown')],
        ['webhook', yes(status.webhookReady, 'no: GitHub.WebhookSecret is not set')],
        ['writes', yes(status.writesEnabled, 'no: GitHub.WritesEnabled is off, reviews stay drafts')],
        ...(deadJobs > 0 ? [['given up', yellow(`${deadJobs} jobs: see Sources on the page`)] as const] : []),
        ...(settingsProblem === null ? [] : [['settings', yellow(settingsProblem)] as const]),
      ],
      colors,
    ),
  ];
}
