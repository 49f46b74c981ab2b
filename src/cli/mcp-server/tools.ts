import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { DelegationScope } from '../../protocol/index.ts';
import type { McpTool } from '../../rpc/index.ts';
import type { Delegated, LedTasks } from './tasks.ts';

const pollMs = 500;
const maxWaitSeconds = 600;

const id = v.pipe(v.string('a text'), v.nonEmpty('a text'));
const Workspace = v.object({ workspaceId: id });
const Prompt = v.object({
  workspaceId: id,
  threadId: v.optional(id),
  text: id,
  waitSeconds: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(maxWaitSeconds)), 0),
});
const Read = v.object({ workspaceId: id, threadId: v.optional(id) });
const Begun = v.object({ threadId: v.string(), messageId: v.string() });
const Conversation = v.looseObject({ turns: v.array(v.looseObject({ status: v.string() })) });

const text = (description: string) => ({ type: 'string', description });
const workspaceId = text('Id of the workspace, from list_workspaces.');
const objectOf = (properties: Readonly<Record<string, unknown>>, ...required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

type ScopedTool = readonly [scope: DelegationScope, tool: McpTool];

/**
 * The tools that a token with these scopes can use.
 *
 * @param tasks absent: the token cannot read the results of tasks
 */
export function toolsFor(scopes: readonly DelegationScope[], delegated: Delegated, tasks?: LedTasks): McpTool[] {
  const all = [...workspaceTools(delegated), ...conversationTools(delegated, tasks), ...requestTools(delegated)];
  return all.flatMap(([scope, tool]) => (scopes.includes(scope) ? [tool] : []));
}

/** Tools that list and start workspaces. */
function workspaceTools(delegated: Delegated): readonly ScopedTool[] {
  return [
    [
      'list',
      {
        name: 'list_workspaces',
        description: 'Lists the workspaces that Oratorio supervises, with the state and health of their agents.',
        isReadOnly: true,
        inputSchema: objectOf({}),
        run: (_, signal) => delegated({ do: 'list' }, signal),
      },
    ],
    [
      'start',
      {
        name: 'start_workspace',
        description: 'Starts the agent of a workspace, or finds the one that runs.',
        isReadOnly: false,
        inputSchema: objectOf({ workspacePath: text('Absolute path of the workspace.') }, 'workspacePath'),
        run: (args, signal) => delegated({ do: 'start', ...parse(v.object({ workspacePath: id }), args) }, signal),
      },
    ],
  ];
}

/** Tools that prompt an agent and read its conversations. */
function conversationTools(delegated: Delegated, tasks: LedTasks | undefined): readonly ScopedTool[] {
  return [
    [
      'prompt',
      {
        name: 'prompt_agent',
        description:
          'Gives the agent of a workspace a task, in a new or an existing conversation. Waits for the answer for waitSeconds; read_conversation shows it later.',
        isReadOnly: false,
        inputSchema: objectOf(
          {
            workspaceId,
            threadId: text('A conversation; absent: a new one.'),
            text: text('The task.'),
            waitSeconds: { type: 'number', minimum: 0, maximum: maxWaitSeconds },
          },
          'workspaceId',
          'text',
        ),
        async run(args, signal) {
          const { waitSeconds, ...request } = parse(Prompt, args);
          const { workspaceId } = request;
          const { threadId } = v.parse(Begun, await delegated({ do: 'prompt', ...request }, signal));
          if (waitSeconds === 0 || !tasks) return { workspaceId, threadId };
          return ended(delegated, { workspaceId, threadId }, waitSeconds, signal);
        },
        ...(tasks && {
          async start(args: unknown, signal: AbortSignal) {
            const { waitSeconds: _, ...request } = parse(Prompt, args);
            const { threadId, messageId } = v.parse(Begun, await delegated({ do: 'prompt', ...request }, signal));
            return tasks.begun({ workspaceId: request.workspaceId, threadId, messageId });
          },
        }),
      },
    ],
    [
      'read',
      {
        name: 'read_conversation',
        description: 'Reads the last turns of a conversation, or lists the conversations of a workspace.',
        isReadOnly: true,
        inputSchema: objectOf({ workspaceId, threadId: text('A conversation; absent: the list.') }, 'workspaceId'),
        run: (args, signal) => delegated({ do: 'read', ...parse(Read, args) }, signal),
      },
    ],
  ];
}

/** Tools that list and decide approval requests. */
function requestTools(delegated: Delegated): readonly ScopedTool[] {
  return [
    [
      'approve',
      {
        name: 'list_requests',
        description: 'Lists the approval requests of the agents of other workspaces.',
        isReadOnly: true,
        inputSchema: objectOf({}),
        run: (_, signal) => delegated({ do: 'requests' }, signal),
      },
    ],
    [
      'approve',
      {
        name: 'decide_request',
        description: 'Allows a request of another workspace once, or declines it. The first answer counts.',
        isReadOnly: false,
        inputSchema: objectOf(
          {
            workspaceId,
            requestId: text('Id of the request, from list_requests.'),
            decision: { type: 'string', enum: ['accept', 'decline'] },
          },
          'workspaceId',
          'requestId',
          'decision',
        ),
        run: (args, signal) =>
          delegated(
            {
              do: 'approve',
              ...parse(
                v.object({
                  ...Workspace.entries,
                  requestId: id,
                  decision: v.picklist(['accept', 'decline'], 'accept or decline'),
                }),
                args,
              ),
            },
            signal,
          ),
      },
    ],
  ];
}

/** Resolves with the conversation when its turn has ended, or waits for an approval, or when the time is over. */
async function ended(
  delegated: Delegated,
  thread: { readonly workspaceId: string; readonly threadId: string },
  waitSeconds: number,
  signal: AbortSignal,
): Promise<unknown> {
  const deadline = performance.now() + waitSeconds * 1000;
  for (;;) {
    const conversation = await delegated({ do: 'read', ...thread }, signal);
    const { turns } = v.parse(Conversation, conversation);
    if (turns.at(-1)?.status !== 'running' || performance.now() > deadline)
      return { ...thread, ...Object(conversation) };
    await sleep(pollMs, undefined, { signal });
  }
}

function parse<S extends v.GenericSchema>(schema: S, args: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, args);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw new Error(`${v.getDotPath(issue) ?? 'arguments'} must be ${issue.expected ?? 'another value'}.`);
}
