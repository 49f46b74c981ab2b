import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub } from '../hub.ts';
import { eventLine } from '../render.ts';
import { canonical, workspacePath } from '../workspace.ts';

/** `oratorio events`: follows until Ctrl-C, or until the Hub has stopped. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const only = options['workspace'] === undefined ? null : canonical(workspacePath(context, options['workspace']));
  const since = typeof options['since'] === 'string' ? options['since'] : undefined;
  return withHub(context, async ({ hub }) => {
    const events = hub.events({
      signal,
      lastEventId: since,
      onLost: (reason) => output.warn(`The event stream broke (${reason}); it is being resumed.`),
    });
    for await (const event of events) {
      if (only !== null && event.workspacePath !== null && event.workspacePath !== only) continue;
      if (output.json) output.jsonLine(event);
      else output.line(eventLine(event, output.colors));
    }
    return exitCodes.ok.code;
  });
}
