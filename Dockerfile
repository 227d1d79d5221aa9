# For a machine with NVIDIA GPUs; the versions are those of constraints.txt.
#   docker build -t counterprior .
#   docker run --gpus all -v "$PWD:/data" counterprior eval --suite ... --out /data/runs/mine
# Models are cached in /data/.cache/huggingface. Pass keys by the environment: -e OPENAI_API_KEY.
FROM python:3.11.14-slim-bookworm

# The wheel of torch on PyPI brings its CUDA libraries; the host needs only the driver.
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir -c constraints.txt '.[models,agents,video]' && rm -rf /src

# What is made is the caller's: run with --user "$(id -u):$(id -g)" to own the files.
ENV HF_HOME=/data/.cache/huggingface
WORKDIR /data
ENTRYPOINT ["counterprior"]
CMD ["doctor"]
