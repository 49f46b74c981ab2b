import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { homeDirectory } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';
import { type DashboardTokens, rotateDashboardToken, watchedDashboardTokens } from '../supervise/index.ts';

/** The user's home of Oratorio: a managed server gets it from its Hub, whose state is directly below it. */
export function homeOf(launch: LaunchDocument | undefined, env: Readonly<Record<string, string | undefined>>): string {
  return launch ? dirname(launch.hubStatePath) : homeDirectory(env);
}

/**
 * Makes the token of this start (docs/dashboard.md) and returns a reader of the workspace's current tokens. Where the
 * home cannot be written, a token of this process alone takes their place: the dashboard is then opened by a log-in, or by the
 * address on a terminal.
 */
export function tokenSource(home: string, workspacePath: string, logger: Logger): () => DashboardTokens {
  try {
    rotateDashboardToken(home, workspacePath);
    const tokens = watchedDashboardTokens(home, workspacePath);
    let known = '';
    return () => {
      const now = tokens();
      if (now.current !== known) logger.protect(now.current);
      known = now.current;
      return now;
    };
  } catch (error) {
    const reason = messageOf(error);
    logger.warn('the dashboard token cannot be stored; this server has one of its own', { home, reason });
    const own = { current: randomBytes(32).toString('base64url'), earlier: [] };
    logger.protect(own.current);
    return () => own;
  }
}
