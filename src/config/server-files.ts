import { delimiter, resolve } from 'node:path';
import { isWithin, realPathOr } from '../lib/index.ts';
import type { McpServerSettings } from '../protocol/index.ts';
import { type NamedFiles, namedFiles } from './named-files.ts';

/** Variables that make programs load other code: so their values are shown with the command. Other values may be secret. */
export const loadsCode =
  /^(?:PATH|HOME|ENV|BASH_ENV|SHELL|SHELLOPTS|PS4|ZDOTDIR|EDITOR|VISUAL|PAGER|CLASSPATH|GCONV_PATH|PERLLIB|PHPRC|PHP_INI_SCAN_DIR|GOFLAGS|NODE_OPTIONS|NODE_PATH|(?:_|JDK_)JAVA_OPTIONS|JAVA_TOOL_OPTIONS|DOTNET_STARTUP_HOOKS|RUSTC_WRAPPER|BUNDLE_GEMFILE|(?:PYTHON|PERL5|RUBY)\w*|(?:LD|DYLD|GIT|NPM_CONFIG|UV|PIP|LUA|OPENSSL|XDG)_\w+)$/i;

/**
 * Files of a workspace that the command of an MCP server names, or a variable that makes programs load code, and programs that its search
 * path finds there.
 */
export function filesOfServer(settings: McpServerSettings, workspace: string): NamedFiles {
  if (settings.transport !== 'stdio') return new Map();
  const { command, args, cwd = '.', env } = settings;
  const loaded = Object.entries(env).flatMap(([name, value]) =>
    loadsCode.test(name) ? [value, ...value.split(delimiter)] : [],
  );
  const place = resolve(workspace, cwd);
  const root = realPathOr(workspace);
  // The empty entry is the working directory.
  const searched = env['PATH']?.split(delimiter).map((directory) => resolve(place, directory)) ?? [];
  const own = searched.filter((directory) => isWithin(root, realPathOr(directory)));
  return namedFiles(workspace, [command, args, loaded], [place, ...own]);
}
