import { showWaits } from '../activity.ts';
import { declineUnattended } from '../approvals.ts';
import type { CommandContext } from '../command.ts';
import { answerOf, converse, promptOf } from '../conversation.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during } from '../hub.ts';

/** `oratorio exec <prompt>`: the final answer and nothing else on standard output. */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const prompt = await promptOf(context);
  if (prompt === undefined) throw usageError('exec needs a prompt.', 'exec');
  const conversation = await converse(context, declineUnattended(output));
  try {
    const turn = await conversation.ask(prompt);
    const answer = await during(context, 'The agent is working', () =>
      answerOf(turn, signal, () => undefined, showWaits(output)),
    );
    if (answer.cancelled) return signal.aborted ? exitCodes.interrupted.code : exitCodes.failure.code;
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
