import { showWaits } from '../activity.ts';
import { declineUnattended } from '../approvals.ts';
import { inChosenWorkspace } from '../choose-workspace.ts';
import type { CommandContext } from '../command.ts';
import { answerOf, converse, promptOf } from '../conversation.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during } from '../hub.ts';

/** `oratorio exec <prompt>`: the final answer and nothing else on standard output. */
export async function run(given: CommandContext): Promise<number> {
  const { output, signal } = given;
  const prompt = await promptOf(given);
  if (prompt === undefined) throw usageError('exec needs a prompt.', 'exec');
  const context = await inChosenWorkspace(given, { mayOffer: false });
  const conversation = await converse(context, declineUnattended(output));
  try {
    const turn = await conversation.ask(prompt);
    const answer = await during(context, 'The agent is working', () =>
      answerOf(turn, signal, () => undefined, showWaits(output)),
    );
    // The caller turns the signal into its exit code.
    signal.throwIfAborted();
    if (answer.cancelled) return exitCodes.failure.code;
    const { threadId } = conversation;
    if (output.json)
      output.document({
        threadId,
        turnId: turn.turnId,
        text: answer.final,
        tokenUsage: answer.turn['tokenUsage'] ?? null,
      });
    else output.line(answer.final);
    return exitCodes.ok.code;
  } finally {
    conversation.close();
  }
}
