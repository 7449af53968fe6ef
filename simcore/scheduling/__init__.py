"""From policies to a batch plan: the queue, the decode pool and the scheduler that fills a step."""
