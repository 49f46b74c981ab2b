/** JSON-RPC 2.0 for all our programs. Nothing here needs Node. */
export {
  type ErrorBody,
  type InvalidMessage,
  JsonRpcError,
  type Message,
  messageText,
  type RpcId,
  readMessage,
  rpcCodes,
} from './message.ts';
export {
  type Answer,
  type CallOptions,
  type IncomingRequest,
  Peer,
  type PeerOptions,
  type Reply,
} from './peer.ts';
