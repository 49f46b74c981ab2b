import { useEffect, useState } from 'preact/hooks';

/** Part of the page that is fetched on first use; null until it is loaded, and if it cannot be fetched. */
export function usePart<T>(isWanted: boolean, fetchPart: () => Promise<T>): T | null {
  const [part, setPart] = useState<T | null>(null);
  useEffect(() => {
    if (isWanted) fetchPart().then(setPart, () => {});
  }, [isWanted]);
  return part;
}
