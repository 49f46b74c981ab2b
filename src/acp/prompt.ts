import { fileURLToPath } from 'node:url';
import { type ContentBlock, RequestError } from '@agentclientprotocol/sdk';
import { backTickFence } from '../lib/index.ts';
import { defaults, type InputPart } from '../protocol/index.ts';

/**
 * Converts an editor's prompt for the agent server: text and pictures unchanged, files as references, other resources as
 * text that says where it is from.
 *
 * @throws RequestError -32602 for a part that is not supported or too large
 */
export function inputOf(prompt: readonly ContentBlock[]): InputPart[] {
  const input = prompt.flatMap(partsOf);
  if (input.length === 0) throw RequestError.invalidParams(undefined, 'the prompt is empty');
  const bytes = Buffer.byteLength(JSON.stringify(input));
  if (bytes > defaults.acp.promptBytes) {
    throw RequestError.invalidParams({ bytes }, `the prompt is larger than ${defaults.acp.promptBytes} bytes`);
  }
  return input;
}

function partsOf(block: ContentBlock): InputPart[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [{ type: 'text', text: block.text }];
    case 'image':
      return [picture(block.mimeType, block.data)];
    case 'resource_link':
      return [link(block.uri, block.name)];
    case 'resource':
      return [resource(block.resource)];
    case 'audio':
      throw RequestError.invalidParams(undefined, 'sound cannot be taken');
  }
}

function picture(mimeType: string, data: string): InputPart {
  if (/^image\/[\w.+-]+$/i.test(mimeType)) return { type: 'image', url: `data:${mimeType};base64,${data}` };
  throw RequestError.invalidParams({ mimeType }, 'an image must have a media type of images');
}

function link(uri: string, name: string): InputPart {
  const path = pathOf(uri);
  return path === undefined
    ? { type: 'text', text: `[${name}](${uri})` }
    : { type: 'fileRef', path, displayPath: path };
}

type Resource = Extract<ContentBlock, { type: 'resource' }>['resource'];

function resource(given: Resource): InputPart {
  if ('text' in given) return { type: 'text', text: `${titleOf(given.uri)}\n${fenced(given.text)}` };
  const mimeType = given.mimeType ?? '';
  if (mimeType.startsWith('image/')) return picture(mimeType, given.blob);
  return { type: 'text', text: `${titleOf(given.uri)} (${mimeType || 'binary'}, not shown)` };
}

const titleOf = (uri: string): string => `@${pathOf(uri) ?? uri}`;

/** The file that a URI names; undefined for everything else, and for files of other machines. */
function pathOf(uri: string): string | undefined {
  if (!uri.startsWith('file:')) return undefined;
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined;
  }
}

/** Between fences that the text itself cannot close. */
export function fenced(text: string, language = ''): string {
  const fence = backTickFence(text);
  return `${fence}${language}\n${text}\n${fence}`;
}
