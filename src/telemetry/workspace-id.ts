/** Label of a workspace without its path: the same in the Hub and in its agent server, and the name of its log directory. */
export { workspaceKey as workspaceId } from '../config/index.ts';
