import { StorageError } from '../thread-store.ts';

/**
 * Reads what we once wrote as JSON.
 * @throws StorageError corrupt, when somebody else has written there
 */
export function parseColumn<T>(json: unknown, file: string): T {
  try {
    return JSON.parse(String(json)) as T;
  } catch (error) {
    // The parser's message quotes the text.
    throw new StorageError('corrupt', `${file} holds a row that is not JSON. It was left as it is`, { cause: error });
  }
}
