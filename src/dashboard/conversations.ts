import * as v from 'valibot';
import type { ThreadReader } from '../agent/index.ts';
import type { Socket } from '../http/index.ts';
import { messageOf } from '../lib/index.ts';
import {
  type AgentInUse,
  type FileDiff,
  protocolVersion,
  type RpcMethod,
  rpcErrors,
  rpcMethods,
  type Thread,
  version,
} from '../protocol/index.ts';
import { JsonRpcError, Peer } from '../rpc/index.ts';
import type { Conversations } from './options.ts';

/** Facts that the reader shows beside the conversations. */
export interface ReaderFacts {
  /** Agent of the last start; null when it is unknown. */
  readonly agent: AgentInUse | null;
  /** Reason that changes are impossible. */
  readonly readOnly: string;
  readonly onBug: (error: unknown) => string;
  /** Changed files of a turn, or of all turns of a thread, without secrets. */
  readonly diff: (thread: Thread, params: DiffParams) => Promise<FileDiff>;
}

type DiffParams = v.InferOutput<(typeof rpcMethods)['turn/diff']['params']>;

const ownAgent: AgentInUse = { kind: 'oratorio', name: 'oratorio', version, state: 'absent', approvals: 'asks' };

const noCapabilities = {
  ...{ threadManagement: false, threadSubscriptions: true, approvalFlow: false, modeSwitch: false },
  ...{ configOverride: false, cronManagement: false, heartbeatManagement: false, skillsManagement: false },
  ...{ pluginManagement: false, commandManagement: false, modelCatalogManagement: false },
  ...{ workspaceConfigManagement: false, mcpManagement: false, subAgentManagement: false },
  ...{ backgroundTerminals: false, channelStatus: false },
  // Clients may then send `turn/diff`, but no method that restores files.
  extensions: { changes: true },
};

/** Serves the conversations of a workspace without an agent server: the usual client protocol, but read only. */
export function readConversations(threads: ThreadReader, facts: ReaderFacts): Conversations {
  const { agent, readOnly, onBug } = facts;
  const peers = new WeakMap<Socket, Peer>();

  async function diff(params: DiffParams): Promise<FileDiff> {
    const thread = threads.read(params.threadId, { turnLimit: 1 });
    if (!thread) throw failure('threadNotFound');
    try {
      return await facts.diff(thread, params);
    } catch (error) {
      throw failure('checkpointFailed', messageOf(error));
    }
  }

  function answer(method: string, params: unknown): unknown {
    switch (method as RpcMethod) {
      case 'initialize':
        return {
          serverInfo: { name: 'oratorio', version, protocolVersion, extensions: [] },
          capabilities: noCapabilities,
        };
      case 'thread/list':
        return { data: threads.list(checked('thread/list', params).includeArchived ?? false) };
      case 'thread/read': {
        const { threadId, ...range } = checked('thread/read', params);
        const thread = threads.read(threadId, range);
        if (!thread) throw failure('threadNotFound');
        return { thread };
      }
      case 'turn/diff':
        return diff(checked('turn/diff', params));
      case 'thread/subscribe':
      case 'thread/unsubscribe':
        return {};
      case 'approval/list':
      case 'checkpoint/list':
        return { data: [] };
      case 'command/list':
        return { data: [], problems: [] };
      case 'model/list':
        return { success: true, models: [] };
      case 'agent/read':
        return { agent: agent ?? ownAgent, modes: [], limits: [], agents: [] };
      default:
        throw failure(method in rpcMethods ? 'methodNotAllowed' : 'methodNotFound', readOnly);
    }
  }

  return {
    isReady: () => true,
    open(socket) {
      const peer = new Peer({
        send: (text) => socket.send(text),
        onRequest: ({ method, params }) => {
          const result = answer(method, params);
          return result instanceof Promise ? result.then((result) => ({ result })) : { result };
        },
        failureOf: (error) => ({ ...rpcErrors.internalError, data: { errorId: onBug(error) } }),
        isStrict: true,
      });
      peers.set(socket, peer);
    },
    message: (socket, text) => peers.get(socket)?.receive(text),
    close: (socket) => peers.get(socket)?.close(new Error('the page has gone')),
  };
}

function checked<M extends 'thread/list' | 'thread/read' | 'turn/diff'>(
  method: M,
  params: unknown,
): v.InferOutput<(typeof rpcMethods)[M]['params']> {
  const parsed = v.safeParse(rpcMethods[method].params, params);
  if (parsed.success) return parsed.output;
  throw failure('invalidParams', parsed.issues[0].message);
}

function failure(name: keyof typeof rpcErrors, detail?: string): JsonRpcError {
  const { code, message } = rpcErrors[name];
  return new JsonRpcError({ code, message: detail === undefined ? message : `${message}: ${detail}` });
}
