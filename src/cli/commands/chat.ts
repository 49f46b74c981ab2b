import { createInterface } from 'node:readline/promises';
import type { RunningTurn } from '../../client/index.ts';
import { showActivity, spentIn } from '../activity.ts';
import { askAtPrompt, askPerson } from '../approvals.ts';
import { runChatCommand } from '../chat-commands.ts';
import type { CommandContext } from '../command.ts';
import { answerOf, approverOf, type Conversation, converse, promptOf } from '../conversation.ts';
import { exitCodes } from '../exit-codes.ts';
import { explain } from '../explain.ts';
import { withHub } from '../hub.ts';
import { offerLogin } from '../login/offer.ts';
import { canonical, isWorkspace, workspacePath } from '../workspace.ts';

/** `oratorio chat [prompt]` */
export async function run(context: CommandContext): Promise<number> {
  const prompt = await promptOf(context);
  return prompt === undefined ? talk(context) : once(context, prompt);
}

async function once(context: CommandContext, prompt: string): Promise<number> {
  const conversation = await converse(context, approverOf(context));
  try {
    return await speak(context, await conversation.ask(prompt), context.signal);
  } finally {
    conversation.close();
  }
}

/** Prints the answer as it comes. */
async function speak({ output }: CommandContext, asked: RunningTurn, signal: AbortSignal): Promise<number> {
  const { cancelled, text, turn } = await answerOf(asked, signal, (piece) => output.raw(piece), showActivity(output));
  if (!text.endsWith('\n')) output.raw('\n');
  const spent = spentIn(turn);
  if (spent !== undefined) output.note(output.colors.dim(spent));
  if (!cancelled) return exitCodes.ok.code;
  output.note('Interrupted.');
  return exitCodes.interrupted.code;
}

/** Runs a command of the conversation, or asks the agent. */
async function answer(context: CommandContext, conversation: Conversation, line: string, signal: AbortSignal) {
  const { output } = context;
  const prompt = await runChatCommand(line, conversation, output);
  if (prompt === '') return;
  await speak(context, await conversation.ask(prompt, true), signal);
  if (conversation.mode === 'plan')
    output.note(output.colors.dim('/accept carries the plan out; or say what to change.'));
}

/** A conversation at a terminal. Ctrl-C interrupts the answer under way; with none under way it leaves, as Ctrl-D does. */
async function talk(context: CommandContext): Promise<number> {
  await connectModel(context);
  const { output } = context;
  const { bold, dim } = output.colors;
  const terminal = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: output.question(bold('› ')),
  });
  let answering: AbortController | undefined;
  // While readline listens, Ctrl-C comes here and not to the process.
  terminal.on('SIGINT', () => {
    if (answering && !answering.signal.aborted) answering.abort();
    else terminal.close();
  });
  context.signal.addEventListener('abort', () => terminal.close(), { once: true });
  const conversation = await converse(
    context,
    askPerson((words) => askAtPrompt(terminal, process.stdout, words), output),
  );
  try {
    output.line(
      dim(`Talking to the agent of ${conversation.workspacePath}. Ctrl-D leaves. Thread: ${conversation.threadId}`),
    );
    terminal.prompt();
    for await (const line of terminal) {
      const prompt = line.trim();
      if (prompt === '/exit' || prompt === '/quit') break;
      if (prompt !== '') {
        answering = new AbortController();
        await answer(context, conversation, prompt, answering.signal).catch((error: unknown) =>
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

/** Offers to connect a model. An agent server that runs already gets it by a restart. */
async function connectModel(context: CommandContext): Promise<void> {
  const path = canonical(workspacePath(context, context.options['workspace']));
  if (!isWorkspace(path, context.home) || !(await offerLogin(context, path))) return;
  await withHub(context, ({ hub }) => hub.restart({ workspacePath: path }, { signal: context.signal }));
}
