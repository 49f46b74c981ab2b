import { createInterface, type Interface } from 'node:readline/promises';
import type { CommandContext } from '../command.ts';
import { type Approver, answerOf, type Conversation, converse, declineAll, promptOf } from '../conversation.ts';
import { exitCodes } from '../exit-codes.ts';
import { explain } from '../explain.ts';

/** `oratorio chat [prompt]` */
export async function run(context: CommandContext): Promise<number> {
  const prompt = await promptOf(context);
  return prompt === undefined ? talk(context) : once(context, prompt);
}

async function once(context: CommandContext, prompt: string): Promise<number> {
  const conversation = await converse(context, declineAll);
  try {
    return await speak(context, conversation, prompt, context.signal);
  } finally {
    conversation.close();
  }
}

/** Asks and prints the answer as it comes. */
async function speak(
  { output }: CommandContext,
  conversation: Conversation,
  prompt: string,
  signal: AbortSignal,
): Promise<number> {
  const { cancelled, text } = await answerOf(await conversation.ask(prompt), signal, (piece) => output.raw(piece));
  if (!text.endsWith('\n')) output.raw('\n');
  if (!cancelled) return exitCodes.ok.code;
  output.note('Interrupted.');
  return exitCodes.interrupted.code;
}

/** A conversation at a terminal. Ctrl-C interrupts the answer under way; with none under way it leaves, as Ctrl-D does. */
async function talk(context: CommandContext): Promise<number> {
  const { output } = context;
  const { bold, dim } = output.colors;
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: bold('› ') });
  let answering: AbortController | undefined;
  // While readline listens, Ctrl-C comes here and not to the process.
  terminal.on('SIGINT', () => {
    if (answering && !answering.signal.aborted) answering.abort();
    else terminal.close();
  });
  context.signal.addEventListener('abort', () => terminal.close(), { once: true });
  const conversation = await converse(context, approver(terminal, output));
  try {
    output.line(dim(`Talking to the agent of ${conversation.workspacePath}. Ctrl-D leaves.`));
    terminal.prompt();
    for await (const line of terminal) {
      const prompt = line.trim();
      if (prompt === '/exit' || prompt === '/quit') break;
      if (prompt !== '') {
        answering = new AbortController();
        await speak(context, conversation, prompt, answering.signal).catch((error: unknown) =>
          output.failure(explain(error)),
        );
        answering = undefined;
      }
      terminal.prompt();
    }
    return exitCodes.ok.code;
  } finally {
    terminal.close();
    conversation.close();
  }
}

/** Asks the person at the terminal whether the agent may. */
function approver(terminal: Interface, output: CommandContext['output']): Approver {
  return async (method, { operation, target }) => {
    if (method !== 'item/approval/request') return declineAll(method, {});
    const { yellow } = output.colors;
    const answer = await terminal.question(
      `\n${yellow('?')} May the agent ${String(operation)} ${String(target)}? [y/N] `,
    );
    return { decision: /^y(es)?$/i.test(answer.trim()) ? 'accept' : 'decline' };
  };
}
