import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { homeDirectory } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import type { LaunchDocument } from '../protocol/index.ts';
import { watchedDashboardToken } from '../supervise/index.ts';

/** The user's home of Oratorio: a managed server is told by its Hub, whose state is right in it. */
export function homeOf(launch: LaunchDocument | undefined, env: Readonly<Record<string, string | undefined>>): string {
  return launch ? dirname(launch.hubStatePath) : homeDirectory(env);
}

/**
 * The token of this user's dashboards as it is now. Where it cannot be kept (a home that cannot be written), one of this
 * process alone takes its place: the dashboard is then opened by who logs in, or by the address that a terminal shows.
 */
export function tokenSource(home: string, logger: Logger): () => string {
  try {
    const token = watchedDashboardToken(home);
    let known = '';
    return () => {
      const now = token();
      if (now !== known) logger.protect(now);
      known = now;
      return now;
    };
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    logger.warn('the dashboard token cannot be kept; this server has one of its own', { home, code });
    const own = randomBytes(32).toString('base64url');
    logger.protect(own);
    return () => own;
  }
}
