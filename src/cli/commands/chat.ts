import { modelSettingsOf } from '../../agent/index.ts';
import type { RunningTurn } from '../../client/index.ts';
import { ConfigError, loadConfig } from '../../config/index.ts';
import { showActivity, spentIn } from '../activity.ts';
import { askPerson } from '../approvals.ts';
import { leaving, runChatCommand } from '../chat/commands.ts';
import { MarkdownStream } from '../chat/markdown.ts';
import { ChatPrompt } from '../chat/prompt.ts';
import { StatusLine } from '../chat/status.ts';
import { inChosenWorkspace } from '../choose-workspace.ts';
import type { CommandContext } from '../command.ts';
import { type Answer, answerOf, approverOf, type Conversation, converse, promptOf } from '../conversation.ts';
import { exitCodes } from '../exit-codes.ts';
import { explain } from '../explain.ts';
import { withHub } from '../hub.ts';
import { offerLogin } from '../login/offer.ts';
import { canonical, isWorkspace, remoteWorkspace, workspacePath } from '../workspace.ts';

/** `oratorio chat [prompt]` */
export async function run(given: CommandContext): Promise<number> {
  const remote = remoteWorkspace(given.options['workspace']);
  if (remote) return (await import('../remote-chat.ts')).chatOnHost(given, remote);
  const prompt = await promptOf(given);
  const context = await inChosenWorkspace(given, { mayOffer: true });
  return prompt === undefined ? talk(context) : once(context, prompt);
}

async function once(context: CommandContext, prompt: string): Promise<number> {
  const { output, signal } = context;
  const conversation = await converse(context, approverOf(context));
  try {
    const { turn, cancelled } = await speak(context, await conversation.ask(prompt), signal);
    const spent = spentIn(turn);
    if (spent !== undefined) output.note(output.colors.dim(spent));
    // The caller turns the signal into its exit code.
    signal.throwIfAborted();
    if (output.isTTY) sayHowToGoOn(context, conversation);
    return cancelled ? exitCodes.interrupted.code : exitCodes.ok.code;
  } finally {
    conversation.close();
  }
}

function sayHowToGoOn({ output }: CommandContext, { threadId }: Conversation): void {
  output.note(output.colors.dim(`Continue: oratorio chat --thread ${threadId}`));
}

/** Prints the answer while it arrives: formatted Markdown on a terminal with colours, else the unchanged text. */
async function speak({ output }: CommandContext, asked: RunningTurn, signal: AbortSignal): Promise<Answer> {
  const { colors, width } = output;
  const hasColours = output.isTTY && colors.bold('x') !== 'x';
  const markdown = hasColours ? new MarkdownStream({ write: (text) => output.raw(text), colors, width }) : undefined;
  const show = (text: string) => (markdown ? markdown.push(text) : output.raw(text));
  const note = (text: string) => {
    markdown?.interrupt();
    output.note(text);
  };
  const answer = await answerOf(asked, signal, show, showActivity({ note, colors, width }));
  markdown?.end();
  if (!answer.text.endsWith('\n')) output.raw('\n');
  if (answer.cancelled) output.note('Interrupted.');
  return answer;
}

/** Runs a command of the conversation, or asks the agent. */
async function answer(
  context: CommandContext,
  conversation: Conversation,
  { line, signal, status }: { readonly line: string; readonly signal: AbortSignal; readonly status: StatusLine },
): Promise<void> {
  const { output } = context;
  const prompt = await runChatCommand(line, conversation, output);
  if (prompt === '') return;
  const began = performance.now();
  const { turn } = await speak(context, await conversation.ask(prompt, true), signal);
  output.note(output.colors.dim(`  ${await status.after(turn, conversation, performance.now() - began)}`));
  if (conversation.mode === 'plan')
    output.note(output.colors.dim('/accept carries the plan out; or say what to change.'));
}

/** A conversation at a terminal. Ctrl-C interrupts the answer under way; with none under way it leaves, as Ctrl-D does. */
async function talk(context: CommandContext): Promise<number> {
  await connectModel(context);
  const { output, signal } = context;
  const { bold, dim } = output.colors;
  let answering: AbortController | undefined;
  const prompt = new ChatPrompt({
    input: process.stdin,
    output: process.stdout,
    prompt: output.question(bold('› ')),
    onInterrupt: () => {
      if (answering && !answering.signal.aborted) answering.abort();
      else prompt.close();
    },
  });
  signal.addEventListener('abort', () => prompt.close(), { once: true });
  try {
    const conversation = await converse(
      context,
      askPerson((words, withdrawn) => prompt.question(words, withdrawn), output),
    );
    try {
      output.line(dim(`Talking to the agent of ${conversation.workspacePath}. /help shows commands, Ctrl-D leaves.`));
      const status = new StatusLine(usualModelOf(context, conversation.workspacePath));
      for (;;) {
        const line = (await prompt.read())?.trim();
        if (line === undefined || leaving.has(line)) break;
        if (line === '') continue;
        answering = new AbortController();
        await answer(context, conversation, { line, signal: answering.signal, status }).catch((error: unknown) =>
          output.failure(explain(error)),
        );
        answering = undefined;
      }
      prompt.close();
      sayHowToGoOn(context, conversation);
      signal.throwIfAborted();
      return exitCodes.ok.code;
    } finally {
      conversation.close();
    }
  } finally {
    prompt.close();
  }
}

/** Model of conversations that name none. */
function usualModelOf({ home, env }: CommandContext, workspace: string): string {
  try {
    const { config } = loadConfig({ home, workspace, env });
    return config.Model || modelSettingsOf(config).main.kind;
  } catch (error) {
    // The agent server has started with settings that were correct then.
    if (error instanceof ConfigError) return 'model of the workspace';
    throw error;
  }
}

/** Offers to connect a model. An agent server that runs already gets it by a restart. */
async function connectModel(context: CommandContext): Promise<void> {
  const path = canonical(workspacePath(context, context.options['workspace']));
  if (!isWorkspace(path, context.home) || !(await offerLogin(context, path))) return;
  await withHub(context, ({ hub }) => hub.restart({ workspacePath: path }, { signal: context.signal }));
}
