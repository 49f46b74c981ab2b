import type * as v from 'valibot';
import type { Listener, ThreadService } from '../agent/index.ts';
import { protocolVersion, type RpcMethod, type RpcResult, type rpcMethods, version } from '../protocol/index.ts';

/** What a request is answered with, and what happens right after the answer was sent. */
export interface Handled<M extends RpcMethod> {
  readonly result: RpcResult<M>;
  readonly after?: () => void;
}

type Params<M extends RpcMethod> = v.InferOutput<(typeof rpcMethods)[M]['params']>;
/** `asker` is the connection: where it hears of what it caused or subscribed to. */
type Method<M extends RpcMethod> = (params: Params<M>, asker: Listener) => Handled<M> | Promise<Handled<M>>;
export type Methods = { readonly [M in RpcMethod]: Method<M> };

/** What this server can do; the rest of the protocol's vocabulary is false, so that a client need not try. */
const capabilities: RpcResult<'initialize'>['capabilities'] = {
  threadManagement: true,
  threadSubscriptions: true,
  approvalFlow: false,
  modeSwitch: false,
  configOverride: false,
  cronManagement: false,
  heartbeatManagement: false,
  skillsManagement: false,
  pluginManagement: false,
  commandManagement: false,
  modelCatalogManagement: false,
  workspaceConfigManagement: false,
  mcpManagement: false,
  subAgentManagement: false,
  backgroundTerminals: false,
  channelStatus: false,
  extensions: {},
};

const introduction: RpcResult<'initialize'> = {
  serverInfo: { name: 'oratorio', version, protocolVersion, extensions: [] },
  capabilities,
};

/** Every method onto the runtime. That `initialize` comes first, and once, is the connection's business. */
export function methodsOf(threads: ThreadService): Methods {
  return {
    initialize: () => ({ result: introduction }),
    'thread/start': ({ identity, displayName, config }) => {
      const { thread, announce } = threads.start({ identity, displayName, model: config?.model });
      return { result: { thread }, after: announce };
    },
    'thread/list': (params) => ({ result: { data: threads.list(params) } }),
    'thread/read': ({ threadId, includeTurns = false }) => ({
      result: { thread: threads.read(threadId, includeTurns) },
    }),
    'thread/resume': ({ threadId }, asker) => {
      const { thread, announce } = threads.resume(threadId, asker);
      return { result: { thread }, after: announce };
    },
    'thread/subscribe': ({ threadId, replayRecent = false }, asker) => {
      const { replay } = threads.subscribe(threadId, asker);
      return replayRecent ? { result: {}, after: replay } : { result: {} };
    },
    'thread/unsubscribe': ({ threadId }, asker) => {
      threads.unsubscribe(threadId, asker);
      return { result: {} };
    },
    'turn/start': ({ threadId, input }, asker) => {
      const { turn, begin } = threads.startTurn(threadId, input, asker);
      return { result: { turn }, after: begin };
    },
    'turn/interrupt': ({ threadId, turnId }) => ({ result: {}, after: threads.interrupt(threadId, turnId) }),
    'model/list': async () => ({ result: await threads.models() }),
  };
}
