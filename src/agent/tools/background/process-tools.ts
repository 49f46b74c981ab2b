import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { defaults } from '../../../protocol/index.ts';
import type { Tool, ToolResult } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { failed } from '../text.ts';
import type { BackgroundProcess } from './background-process.ts';
import type { BackgroundProcesses } from './background-processes.ts';
import { maxWaitingInput } from './command-driver.ts';

const { backgroundSettleMs, maxOutputWaitMs } = defaults.agent;

const id = v.string('the id of a background process');
const textWords = `a text of at most ${maxWaitingInput} characters`;

/** `ExecOutput`, `ExecInput` and `ExecStop`: for commands that Exec has started in the background. */
export function createProcessTools(processes: BackgroundProcesses): readonly Tool[] {
  return [createExecOutput(processes), createExecInput(processes), createExecStop(processes)];
}

const createExecOutput = (processes: BackgroundProcesses): Tool =>
  defineTool({
    name: 'ExecOutput',
    description: 'Reads the new output of a background process, and its state.',
    isReadOnly: false,
    isExtra: true,
    parameters: v.object({
      id,
      waitMs: v.pipe(
        v.optional(v.pipe(v.number('a number of milliseconds'), v.minValue(0, 'at least 0')), 0),
        v.description(`Waits for output, at most ${maxOutputWaitMs}.`),
        v.transform((asked) => Math.min(Math.ceil(asked), maxOutputWaitMs)),
      ),
    }),
    aliases: { id: ['processId', 'process', 'sessionId'], waitMs: ['wait', 'timeoutMs'] },
    async run({ id, waitMs }, { threadId, signal }) {
      const process = processes.get(threadId, id);
      if (!process) return unknown('ExecOutput', id, threadId, processes);
      await process.output.arrives(waitMs, signal);
      if (waitMs > 0) await settle(process, signal);
      signal.throwIfAborted();
      return stateOf(process);
    },
  });

const createExecInput = (processes: BackgroundProcesses): Tool =>
  defineTool({
    name: 'ExecInput',
    description: 'Writes to a background process, line ends included, and returns its next output.',
    isReadOnly: false,
    isExtra: true,
    parameters: v.object({
      id,
      text: v.pipe(v.string(textWords), v.nonEmpty(textWords), v.maxLength(maxWaitingInput, textWords)),
    }),
    aliases: { id: ['processId', 'process', 'sessionId'], text: ['input', 'chars', 'content'] },
    // A shell may read it: input is as powerful as a command.
    approvalFor: async ({ id, text }) => ({
      kind: 'shell',
      operation: 'input',
      target: text,
      scopeKey: `exec-input:${id}`,
      covers: `all input to the background process ${id}`,
    }),
    async run({ id, text }, { threadId, signal }) {
      const process = processes.get(threadId, id);
      if (!process) return unknown('ExecInput', id, threadId, processes);
      if (!process.write(text)) return failed(`ExecInput: the process ${id} reads no input. ${sentenceOf(process)}`);
      await process.output.arrives(backgroundSettleMs, signal);
      await settle(process, signal);
      signal.throwIfAborted();
      return stateOf(process);
    },
  });

const createExecStop = (processes: BackgroundProcesses): Tool =>
  defineTool({
    name: 'ExecStop',
    description: 'Ends a background process with everything that it has started.',
    isReadOnly: false,
    isExtra: true,
    parameters: v.object({ id }),
    aliases: { id: ['processId', 'process', 'sessionId'] },
    async run({ id }, { threadId }) {
      const process = processes.get(threadId, id);
      if (!process) return unknown('ExecStop', id, threadId, processes);
      await process.stop('agent');
      return { ...stateOf(process), isError: false };
    },
  });

/** Waits a moment, so that output that has begun is complete as far as possible. */
async function settle(process: BackgroundProcess, signal: AbortSignal): Promise<void> {
  if (!process.isRunning) return;
  // An abort ends the pause; the caller throws.
  await Promise.race([process.ended, sleep(backgroundSettleMs, undefined, { signal }).catch(() => undefined)]);
}

/** New output and state of a process, for the model. */
export function stateOf(process: BackgroundProcess): ToolResult {
  const text = process.output.read().trimEnd();
  const { state, exitCode } = process.info;
  return {
    text: `${text === '' ? '(no new output)' : text}\n\n${sentenceOf(process)}`,
    isError: state === 'failed',
    ...(exitCode !== undefined && { exitCode }),
  };
}

function sentenceOf(process: BackgroundProcess): string {
  const { id, info } = process;
  const { state, pid, exitCode, signal, lastError } = info;
  if (state === 'failed') return `The process ${id} could not be started: ${lastError ?? 'unknown reason'}.`;
  if (process.isRunning) return `The process ${id} (pid ${pid ?? '?'}) is running.`;
  const how =
    exitCode === undefined ? (signal ? `by ${signal}` : 'with an unknown exit code') : `with exit code ${exitCode}`;
  return `The process ${id} has ended ${how}.`;
}

function unknown(tool: string, id: string, threadId: string, processes: BackgroundProcesses): ToolResult {
  const ids = processes.list(threadId).map((process) => process.id);
  return failed(
    `${tool}: this conversation has no background process ${id.slice(0, 40)}. It has: ${ids.join(', ') || 'none'}.`,
  );
}
