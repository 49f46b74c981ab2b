import type { McpServerSettings } from '../../protocol/index.ts';
import type { Login, LoginOptions } from './login.ts';
import type { EndedLogin } from './logout.ts';

export type { Login, LoginOptions } from './login.ts';
export { LoginFile, type StoredLogin } from './login-file.ts';
export { LoginSession } from './session.ts';
export { serverAddress, usesLogin } from './subject.ts';

/** See `logout.ts`, which is loaded on the first call. @throws McpFailure */
export const endLogin = async (home: string, settings: McpServerSettings, signal?: AbortSignal): Promise<EndedLogin> =>
  (await import('./logout.ts')).endLogin(home, settings, signal);

/** Begins a log-in. Its code is loaded on the first call. @throws McpFailure */
export const beginLogin = async (options: LoginOptions): Promise<Login> =>
  (await import('./login.ts')).Login.begin(options);
