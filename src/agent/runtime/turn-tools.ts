import type { ModelTool } from '../model.ts';
import type { Tool } from '../tool.ts';

/** Tools of one turn: those of the server, and those that the caller runs. A name of the caller hides one of the server. */
export class TurnTools {
  readonly #client: ReadonlyMap<string, ModelTool>;
  #server: ReadonlyMap<string, Tool> = new Map();
  #declarations: readonly ModelTool[] = [];
  #bytes = 0;

  constructor(client: readonly ModelTool[] = []) {
    this.#client = new Map(client.map((tool) => [tool.name, tool]));
  }

  /** Sets the tools of the server, before the first request. */
  offer(server: readonly Tool[]): void {
    this.#server = new Map(server.filter(({ name }) => !this.#client.has(name)).map((tool) => [tool.name, tool]));
    this.#declarations = [...this.#client.values(), ...Array.from(this.#server.values(), asModelTool)];
    this.#bytes = this.#declarations.reduce((bytes, tool) => bytes + toolBytes(tool), 0);
  }

  isClientTool(name: string): boolean {
    return this.#client.has(name);
  }

  /** Tool of the server. */
  toolOf(name: string): Tool | undefined {
    return this.#server.get(name);
  }

  /** Names of the tools of the server. */
  get serverNames(): readonly string[] {
    return [...this.#server.keys()];
  }

  get names(): readonly string[] {
    return [...this.#server.keys(), ...this.#client.keys()];
  }

  get declarations(): readonly ModelTool[] {
    return this.#declarations;
  }

  /** Size of the declarations in a request. */
  get bytes(): number {
    return this.#bytes;
  }
}

const declared = new WeakMap<ModelTool, number>();

/** Size of a declaration, measured once. */
function toolBytes(tool: ModelTool): number {
  let bytes = declared.get(tool);
  if (bytes === undefined) {
    bytes = tool.name.length + tool.description.length + JSON.stringify(tool.inputSchema).length;
    declared.set(tool, bytes);
  }
  return bytes;
}

/** Declarations, one per tool: providers recognise a tool by identity. */
const modelTools = new WeakMap<Tool, ModelTool>();

function asModelTool(tool: Tool): ModelTool {
  let known = modelTools.get(tool);
  if (!known) {
    const { name, description, inputSchema } = tool;
    known = { name, description, inputSchema };
    modelTools.set(tool, known);
  }
  return known;
}
