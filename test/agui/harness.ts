/** The AG-UI endpoint on a real HTTP server, onto the real runtime with a model whose every word the test decides. */

import { type AgentSubscriber, HttpAgent, type RunAgentParameters } from '@ag-ui/client';
import type { Event as AguiEvent } from '@ag-ui/core';
import type { Test } from 'tap';
import { MemoryStore, type ModelProvider, Runtime, type Tool } from '../../src/agent/index.ts';
import { createUpdatePlan } from '../../src/agent/tools/update-plan.ts';
import { type AguiOptions, aguiRoutes } from '../../src/agui/index.ts';
import { start } from '../http/support.ts';

const tool = (name: string, more: Partial<Tool>): Tool => ({
  name,
  source: 'builtin',
  description: `${name} of the test`,
  inputSchema: { type: 'object', properties: {} },
  isReadOnly: true,
  parse: (args) => ({ ok: true, args }),
  approvalFor: async () => undefined,
  run: async (args) => ({ text: `${name}: ${JSON.stringify(args)}`, isError: false }),
  ...more,
});

/** One tool that may always run, and one that needs an approval. */
export const tools: readonly Tool[] = [
  tool('Look', {}),
  tool('Change', {
    isReadOnly: false,
    approvalFor: async (args) => {
      const { path } = args as { readonly path: string };
      return {
        kind: 'file',
        operation: 'write',
        target: `/work/${path}`,
        scopeKey: `file:write:/work/${path}`,
        covers: path,
      };
    },
  }),
  createUpdatePlan(),
];

export interface Endpoint {
  readonly url: string;
  readonly runtime: Runtime;
  readonly bugs: unknown[];
}

export async function serve(
  t: Test,
  provider: ModelProvider,
  options: Partial<Omit<AguiOptions, 'runtime'>> = {},
): Promise<Endpoint> {
  const faults: unknown[] = [];
  const runtime = new Runtime({
    workspacePath: '/work',
    store: new MemoryStore(),
    provider: async () => provider,
    tools: () => tools,
    settings: {
      systemPrompt: '',
      maxToolCallRounds: 10,
      maxSessionQueueSize: 5,
      compaction: { isAutomatic: false, contextWindow: 100_000, reserveTokens: 1_000, keepRecentTurns: 3 },
      subAgent: { maxDepth: 1, maxConcurrency: 1, maxToolCallRounds: 5, model: '', exploreModel: '' },
      approvalPolicy: 'default',
      approvalTimeoutMs: 60_000,
      maxRetries: 0,
      quota: { wait: 'never', maxWaitMs: 0 },
      fallbackModels: [],
      budget: { turnUsd: 0, sessionUsd: 0, dayUsd: 0 },
      turns: { resume: 'never', maxResumes: 0, resumeWithinHours: 1, resumeAgents: false },
    },
    onBug: (error) => {
      faults.push(error);
      return 'bug';
    },
  });
  const { path = '/ag-ui', apiKey = '', ...rest } = options;
  const { url, bugs } = await start(t, 'uws', { routes: aguiRoutes({ runtime, path, apiKey, ...rest }) });
  t.teardown(() => runtime.close());
  t.teardown(() => {
    if (faults.length + bugs.length > 0) throw new AggregateError([...faults, ...bugs], 'a bug was met');
  });
  return { url: `${url}${path}`, runtime, bugs };
}

export interface Ran {
  readonly events: AguiEvent[];
  readonly types: string[];
  readonly result: unknown;
}

/** One run of the protocol's own client, which checks the order of events, and its observations. */
export async function run(
  agent: HttpAgent,
  parameters: RunAgentParameters = {},
  more: AgentSubscriber = {},
): Promise<Ran> {
  const events: AguiEvent[] = [];
  const { result } = await agent.runAgent(parameters, {
    ...more,
    onEvent(seen) {
      events.push(seen.event as AguiEvent);
      return more.onEvent?.(seen);
    },
  });
  return { events, types: events.map(({ type }) => type as string), result };
}

export function agentOf(url: string, threadId = 'a thread', headers: Record<string, string> = {}): HttpAgent {
  return new HttpAgent({ url, threadId, headers });
}

export function say(agent: HttpAgent, content: string, id = `user-${agent.messages.length}`): void {
  agent.addMessage({ id, role: 'user', content });
}

export const last = (ran: Ran): AguiEvent | undefined => ran.events.at(-1);

/** The run is refused; the client says so on the console as well. */
export async function refusal(t: Test, agent: HttpAgent, parameters: RunAgentParameters = {}): Promise<unknown> {
  const spoken = t.capture(console, 'error');
  const error = await run(agent, parameters).then(
    () => t.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  spoken.restore();
  return error;
}
