import { maskedAddress, visible } from '../lib/index.ts';

/** Longest value of a setting that is shown in one line; commands are always shown in full. */
const maxValueLength = 400;

/**
 * Sensitive settings of a workspace as lines for the question of trust: commands and addresses in full, secrets masked, every
 * control character visible.
 */
export function requestLines(requested: ReadonlyMap<string, unknown>): string[] {
  return [...requested].flatMap(([path, value]) => linesOf(path, value)).map((line) => `  ${line}`);
}

function linesOf(path: string, value: unknown): string[] {
  if (path === 'McpServers' && isObject(value)) {
    return Object.entries(value).flatMap(([name, server]) => serverLines(`${path}.${name}`, server));
  }
  if (!isObject(value)) return [line(path, masked(path, value), !startsPrograms.test(path))];
  return Object.entries(value).flatMap(([key, inside]) => linesOf(`${path}.${key}`, inside));
}

const startsPrograms = /^(Hooks|Agent)\b/;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Command or address of an MCP server, never shortened: the end of a command can be the important part. */
function serverLines(path: string, server: unknown): string[] {
  if (!isObject(server)) return [line(path, masked(path, server))];
  const { command, args, ...rest } = server;
  const words = [command, ...(Array.isArray(args) ? args : args === undefined ? [] : [args])];
  const runs =
    command === undefined && args === undefined ? [] : [line(`${path} runs`, words.map(wordOf).join(' '), false)];
  return [...runs, ...Object.entries(rest).flatMap(([key, value]) => linesOf(`${path}.${key}`, value))];
}

const wordOf = (word: unknown): string =>
  typeof word === 'string' && /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);

const secretName = /(key|token|secret|passw\w*|credentials?)$/i;
/** A section of this name; an MCP server may have the same name. */
const secretSection = /(?<!^McpServers)\.(env|httpHeaders|headers)\.[^.]*$/i;

/** A value as JSON; a secret only as “set”. References to variables are not secrets. */
function masked(path: string, value: unknown): string {
  const isSecret = secretName.test(path.split('.').at(-1) ?? '') || secretSection.test(path);
  if (isSecret && typeof value === 'string' && value !== '' && !isReference(value)) return '(set, not shown)';
  return JSON.stringify(typeof value === 'string' ? maskedAddress(value) : value);
}

const isReference = (value: unknown): boolean => typeof value === 'string' && /^\$\{\w+\}$/.test(value);

function line(name: string, value: string, isShort = true): string {
  const shown = visible(value, { multiline: false });
  const text =
    isShort && shown.length > maxValueLength
      ? `${shown.slice(0, maxValueLength)}… (${shown.length} characters)`
      : shown;
  return `${visible(name, { multiline: false })}  ${text}`;
}
