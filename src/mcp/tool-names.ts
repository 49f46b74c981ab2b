import { createHash } from 'node:crypto';
import { defaults } from '../protocol/index.ts';

const longest = defaults.mcp.toolNameChars;

/** Makes names for the tools of MCP servers: `mcp__<server>__<tool>`, as models allow them, no two alike. */
export class ToolNames {
  readonly #taken = new Set<string>();

  /**
   * Characters that models do not allow become `_`. A name that is too long, or taken, ends with a hash of its
   * origin, so that it is the same at every start.
   */
  nameOf(server: string, tool: string): string {
    const plain = `mcp__${server}__${tool}`.replace(/[^a-zA-Z0-9_-]/g, '_');
    const name = plain.length <= longest && !this.#taken.has(plain) ? plain : withHash(plain, `${server}\0${tool}`);
    this.#taken.add(name);
    return name;
  }
}

function withHash(plain: string, meaning: string): string {
  const hash = createHash('sha256').update(meaning).digest('hex').slice(0, 8);
  return `${plain.slice(0, longest - hash.length - 1)}_${hash}`;
}
